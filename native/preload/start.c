/* start.c: what happens when the program starts: WEIR_RUN is read, and the streams get their modes. */
#include "config.h"
#include "inherited.h"
#include "libc.h"
#include "streams.h"
#include "stdin.h"

static const char *lookup(char *const *environment, const char *name) {
    for (; environment && *environment; environment++)
        if (text_begins(*environment, name)) return *environment + text_length(name);
    return NULL;
}

/* glibc hands the environment to constructors, and may run this one before its own; musl has it ready by then. */
__attribute__((constructor)) static void start(int argc, char **argv, char **environment) {
    (void)argc, (void)argv;
    char **where = gnu_get_libc_version ? environment : &__environ ? __environ : NULL;
    const char *value = lookup(where, "WEIR_RUN=");
    if (!value || !config_parse(&config, value)) return;
    stdin_start();
    streams_start();
    inherited_start();
}
