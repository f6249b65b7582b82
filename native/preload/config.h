/* config.h: the configuration in the environment variable WEIR_RUN.

   Lines `key=value`. An unknown key is ignored, so that an older library works with a newer weir:
     lib=/path/of/the/so            the library, as in LD_PRELOAD
     stdin|stdout|stderr=MODE       none, line, full or full:BYTES
     file=GLOB=MODE                 the mode of streams of fopen, fdopen and freopen; may repeat, the first match counts
     force=1                        the program's setvbuf and its like do not change these modes
     order=1                        stdio and write(2) on one descriptor keep the program's order
     stdin-private=DEV:INO          children get /dev/null instead of this file as standard input
     first=PID                      the PID of the command's parent: stdin-private does not affect the command
     coalesce=all|files             gather tiny reads and writes
     arena=/proc/PID/fd/N           the arena for gathered bytes: see arena.h
     exec-flush=1                   write own stdio bytes before exec

   weir checks the limits below before it starts the command: a file= line beyond MAX_FILES is ignored, and a value of
   CONFIG_BYTES or more disables the library. crates/control/src/preload has them too. */
#ifndef WEIR_CONFIG_H
#define WEIR_CONFIG_H

#include "text.h"

/* The values of _IOFBF, _IOLBF and _IONBF, which are the same in glibc and musl. */
enum mode_kind { MODE_FULL = 0, MODE_LINE = 1, MODE_NONE = 2, MODE_KEEP = 3 };
struct mode {
    enum mode_kind kind;
    size_t bytes; /* the size of a full buffer */
};
enum { DEFAULT_FULL_BYTES = 65536, MAX_FILES = 16, CONFIG_BYTES = 8192, PATH_BYTES = 1024 }; /* with the final NUL */
enum coalesce { COALESCE_OFF = 0, COALESCE_FILES, COALESCE_ALL };

struct config {
    struct mode standard[3];
    struct {
        struct span glob;
        struct mode mode;
    } files[MAX_FILES];
    int files_count;
    int force, order, exec_flush, private_stdin, loaded;
    enum coalesce coalesce;
    uint64_t private_dev, private_ino;
    int64_t first_pid;
    char lib[PATH_BYTES], arena[128];
    char text[CONFIG_BYTES]; /* a copy of WEIR_RUN: programs overwrite their environment to change their titles */
};
extern struct config config;

/* Parses the value of WEIR_RUN into a configuration of zero bytes, which then contains a copy of the value. Returns false, and
   the library does nothing, if the value is too long or has no absolute path of the library. */
int config_parse(struct config *into, const char *value);
#endif
