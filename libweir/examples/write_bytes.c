/* write_bytes.c: writes BYTES bytes in system calls of SIZE bytes; with `sync` each call waits for the
 * device. */
#include <fcntl.h>

#include "example.h"

#define USAGE "FILE BYTES SIZE [sync]"

int main(int argc, char **argv)
{
    if (argc < 4 || argc > 5 || (argc == 5 && strcmp(argv[4], "sync") != 0))
        usage(USAGE, NULL, NULL);
    const char *name = argv[1];
    uint64_t left = number_argument(argv[2], INT64_MAX, USAGE);
    uint64_t size = number_argument(argv[3], WEIR_BUFFER_MAX, USAGE);
    if (size == 0)
        usage(USAGE, argv[3], "SIZE must be at least 1");

    char *block = malloc(size);
    if (!block)
        fail(name, ENOMEM);
    memset(block, 'x', size); /* touches the memory: otherwise the first write includes its page faults */

    /* WEIR_NONE: one write(2) per call, continued after a short write. */
    weir_stream *s;
    int flags = O_WRONLY | O_CREAT | O_TRUNC | (argc == 5 ? O_SYNC : 0);
    check(weir_open(&s, name, flags, &(struct weir_options){ .mode = WEIR_NONE }), name);
    while (left > 0) {
        size_t bytes = left < size ? (size_t)left : (size_t)size;
        left -= (uint64_t)check(weir_write(s, block, bytes), name);
    }
    check(weir_close(s), name);
    free(block);
    return 0;
}
