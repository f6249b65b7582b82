/* start.c: the constructor, which reads WEIR_RUN and starts the parts of the library. */
#include "config.h"
#include "gather.h"
#include "functions.h"
#include "libc.h"
#include "streams.h"

static const char *find_variable(char *const *environment, const char *name) {
    for (; environment && *environment; environment++)
        if (text_begins(*environment, name)) return *environment + text_length(name);
    return NULL;
}

/* glibc passes the environment to constructors, and may run this one before its own; musl has set __environ by
   then. */
__attribute__((constructor)) static void start(int argc, char **argv, char **environment) {
    (void)argc, (void)argv;
    char **variables = gnu_get_libc_version ? environment : &__environ ? __environ : NULL;
    const char *value = find_variable(variables, "WEIR_RUN=");
    if (!value || !config_parse(&config, value)) return;
    private_stdin_start();
    streams_start();
    exec_flush_start();
#if WEIR_HAS_DISPATCH
    gather_start();
#endif
}
