/* start.c: the constructor, which reads WEIR_RUN and starts the parts of the library. */
#include "config.h"
#include "gather.h"
#include "functions.h"
#include "handlers.h"
#include "libc.h"
#include "streams.h"

/* Returns the value of the variable whose name and `=` are `prefix`, or null. */
static const char *find_variable(char *const *environment, const char *prefix) {
    for (; environment && *environment; environment++)
        if (text_begins(*environment, prefix)) return *environment + text_length(prefix);
    return NULL;
}

/* glibc passes the environment as the third argument; this constructor may run before glibc sets __environ. musl passes
   no arguments, but sets __environ before it runs constructors. */
__attribute__((constructor)) static void start(int argc, char **argv, char **environment) {
    (void)argc, (void)argv;
    char **variables = environment;
    if (!gnu_get_libc_version) variables = &__environ ? __environ : NULL;
    const char *value = find_variable(variables, "WEIR_RUN=");
    if (!value || !config_parse(&config, value)) return;
    private_stdin_start();
    streams_start();
    exec_flush_start();
    handlers_start();
#if WEIR_HAS_DISPATCH
    gather_start();
#endif
}
