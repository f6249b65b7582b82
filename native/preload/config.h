/* config.h: what the environment variable WEIR_RUN asks for.

   Lines `key=value`; an unknown key is left alone, so that an older library meets a newer weir:
     lib=/path/of/the/so            the library, as it stands in LD_PRELOAD
     stdin|stdout|stderr=MODE       none, line, full or full:BYTES
     file=GLOB=MODE                 the same for streams of fopen, fdopen and freopen; may repeat, the first counts
     force=1                        setvbuf and its like by the program do not undo these modes
     order=1                        stdio and write(2) on one descriptor stay in the program's order
     stdin-private=DEV:INO          what the command starts gets /dev/null instead of this file as standard input
     first=PID                      the command itself (its own pid, or its parent's): stdin-private does not touch it
     coalesce=all|files             tiny reads and writes are gathered
     arena=/proc/PID/fd/N           where: see arena.h
     delay_us=N                     how long a byte may wait there (kept by weir, from outside)
     exec-flush=1                   own stdio bytes are out before exec */
#ifndef WEIR_CONFIG_H
#define WEIR_CONFIG_H

#include "text.h"

/* The values of _IOFBF and its like, the same in every C library here. */
enum mode_kind { MODE_FULL = 0, MODE_LINE = 1, MODE_NONE = 2, MODE_KEEP = 3 };
struct mode {
    enum mode_kind kind;
    size_t bytes; /* of a full buffer */
};
enum { FULL_BYTES = 65536, FILES_MAX = 16, CONFIG_BYTES = 8192 };
enum coalesce { COALESCE_OFF = 0, COALESCE_FILES, COALESCE_ALL };

struct config {
    struct mode standard[3];
    struct {
        struct span glob;
        struct mode mode;
    } files[FILES_MAX];
    int files_count;
    int force, order, exec_flush, private_stdin, loaded;
    enum coalesce coalesce;
    uint64_t private_dev, private_ino;
    int64_t first_pid;
    char lib[1024], arena[128];
    char text[CONFIG_BYTES]; /* WEIR_RUN itself: programs overwrite their environment to change their titles */
};
extern struct config config;

/* Reads the value of WEIR_RUN; false (and nothing is done) if it is too long or names no library. */
int config_parse(struct config *into, const char *value);
#endif
