/* freopen.c: opens another file for an existing stream. */
#include "stdio_private.h"

#include <unistd.h>

/* Moves the descriptor to the stream's previous number: programs rely on 0, 1 and 2. */
static int move_to_number(int fd, int number, const struct weir__stdio_mode *mode)
{
    if (number < 0 || fd == number)
        return fd;
    int64_t result = WEIR_CALL(dup3(fd, number, mode->oflags & O_CLOEXEC));
    weir__kernel.close(fd);
    return (int)result;
}

static int open_new(weir_stream **new_stream, const char *path, int number,
                    const struct weir__stdio_mode *mode)
{
    char link[sizeof "/proc/self/fd/" + 12];
    snprintf(link, sizeof link, "/proc/self/fd/%d", number);
    if (!path && number < 0)
        return -EBADF;
    int fd = weir__stdio_open(path ? path : link, mode);
    if (fd >= 0)
        fd = move_to_number(fd, number, mode);
    if (fd < 0)
        return fd;
    int result = weir__stdio_stream(new_stream, fd, mode);
    if (result < 0) {
        if (fd != number)
            weir__kernel.close(fd);
        return result;
    }
    weir__unregister(*new_stream);
    return 0;
}

/* Flushes to the old file before its number is reused. If the new file cannot be opened, the stream stays
 * valid, with no file. */
weir_stream *weir_stdio_freopen(const char *path, const char *string, weir_stream *s)
{
    struct weir__stdio_mode mode;
    weir_stream *new_stream;
    int before = errno;
    weir_lock(s);
    int number = weir__config(s)->fd;
    weir__stdio_close_flush(s);
    weir_unlock(s);
    int result = weir__stdio_parse_mode(&mode, string);
    if (result == 0)
        result = open_new(&new_stream, path, number, &mode);
    if (result == 0) {
        weir__stdio_replace(s, new_stream, number >= 0);
        errno = before; /* failures to write and to close the old file are not reported */
        return s;
    }
    if (weir__stdio_closed_stream(&new_stream) == 0)
        weir__stdio_replace(s, new_stream, false);
    return weir__stdio_result(NULL, result);
}
