/* fread.c: reads bytes and blocks, and ungetc. */
#include "stdio_private.h"

#include <limits.h>

int weir__stdio_fill(weir_stream *s)
{
    if (s->read < s->held_read_limit)
        return 1;
    int before = errno;
    weir__stdio_take_errors(s);
    ssize_t got = weir__start_reading(s);
    if (got > 0)
        got = weir__fill(s, 1);
    if (got < 0)
        return weir__stdio_fail(s, got);
    errno = before; /* at the end of the input errno must not change */
    return got > 0;
}

int weir_stdio_getc_slow(weir_stream *s)
{
    weir__enter(s);
    int c = EOF;
    if (weir__stdio_fill(s) > 0)
        c = weir__consume_byte(s);
    weir__leave(s);
    return c;
}

int weir_stdio_ungetc(int c, weir_stream *s)
{
    if (c == EOF)
        return EOF;
    weir__enter(s);
    weir__stdio_take_errors(s);
    int result = weir__ungetc_held(s, (unsigned char)c);
    if (result < 0)
        result = weir__stdio_fail(s, result);
    weir__leave(s);
    return result;
}

static size_t read_held(weir_stream *s, char *to, size_t bytes)
{
    size_t done = 0;
    int before = errno;
    ssize_t got = 1;
    while (done < bytes && got > 0) {
        weir__stdio_take_errors(s);
        got = weir__read_held(s, to + done, bytes - done);
        if (got > 0)
            done += (size_t)got;
    }
    errno = before;
    if (got < 0)
        weir__stdio_fail(s, got);
    return done;
}

size_t weir_stdio_fread(void *to, size_t size, size_t count, weir_stream *s)
{
    size_t bytes = size * count;
    if (bytes == 0)
        return 0;
    weir__enter(s);
    int error = bytes / size != count ? -EOVERFLOW : bytes > SSIZE_MAX ? -EINVAL : 0;
    size_t done = error ? (weir__stdio_fail(s, error), 0) : read_held(s, to, bytes);
    weir__leave(s);
    return done == bytes ? count : done / size;
}

int weir_stdio_getw(weir_stream *s)
{
    int word;
    return weir_stdio_fread(&word, sizeof word, 1, s) == 1 ? word : EOF;
}
