/* fwrite.c: writes bytes, strings and blocks. */
#include "stdio_private.h"

#include <limits.h>

/* Keeps the end-of-file indicator, unlike weir__start_writing. */
int weir__stdio_start_writing(weir_stream *s)
{
    weir__stdio_take_errors(s);
    bool end = weir__state(s)->eof;
    int result = weir__start_writing(s);
    weir__state(s)->eof = end;
    return result;
}

size_t weir__stdio_write(weir_stream *s, const struct iovec *iov, int count)
{
    size_t total = 0;
    for (int i = 0; i < count; i++)
        total += iov[i].iov_len;
    ssize_t accepted = weir__stdio_start_writing(s);
    if (accepted == 0)
        accepted = count == 1 ? weir__write_held(s, iov->iov_base, total) : weir_writev(s, iov, count);
    if (accepted < 0) {
        weir__stdio_fail_write(s, accepted);
        return 0;
    }
    if ((size_t)accepted < total) /* the only error that does not stick is EAGAIN */
        weir__stdio_fail_write(s, weir__state(s)->error ? weir__state(s)->error : -EAGAIN);
    return (size_t)accepted;
}

/* Appends a byte that does not end a line to a line-buffered stream, which has no open limit. The caller holds the lock or
 * is the only thread. Returns false, and appends nothing, if the byte needs the slow path. */
static inline bool append_in_line(weir_stream *s, int c)
{
    const struct weir__state *state = weir__state(s);
    uint64_t at = WEIR_LOAD(&s->head.written);
    if (at >= state->line_limit || (unsigned char)c == state->line_end)
        return false;
    *(char *)(uintptr_t)at = (char)c;
    WEIR_PUBLISH(&s->head.written, at + 1);
    return true;
}

/* Appends a byte, and writes the buffer if the mode requires it. Returns -errno on failure. */
static int append_byte(weir_stream *s, int c)
{
    const struct weir__state *state = weir__state(s);
    if (WEIR_LOAD(&s->head.written) < state->line_limit && (unsigned char)c == state->line_end)
        return (int)weir__end_line(s);
    int result = weir__stdio_start_writing(s);
    if (result < 0 || weir__config(s)->mode != WEIR_LINE)
        return result < 0 ? result : weir_putc_held(s, c);
    char byte = (char)c;
    return (int)weir__write_held(s, &byte, 1);
}

static WEIR_NOINLINE int putc_locked(int c, weir_stream *s)
{
    weir__enter(s);
    uint64_t at = WEIR_LOAD(&s->head.written);
    int result = (unsigned char)c;
    if (at < s->held_limit) {
        *(char *)(uintptr_t)at = (char)c;
        WEIR_PUBLISH(&s->head.written, at + 1);
    } else if (!append_in_line(s, c)) {
        int appended = append_byte(s, c);
        if (appended < 0)
            result = weir__stdio_fail_write(s, appended);
    }
    weir__leave(s);
    return result;
}

int weir_stdio_putc_slow(int c, weir_stream *s)
{
    if (WEIR_LIKELY(weir__one_thread() && append_in_line(s, c)))
        return (unsigned char)c;
    return putc_locked(c, s);
}

static WEIR_NOINLINE size_t write_locked(weir_stream *s, const void *from, size_t bytes)
{
    weir__enter(s);
    size_t accepted = bytes;
    if (!weir__stdio_copy_in(s, from, bytes)) {
        struct iovec all = {(void *)(uintptr_t)from, bytes};
        accepted = weir__stdio_write(s, &all, 1);
    }
    weir__leave(s);
    return accepted;
}

static inline size_t write_bytes(weir_stream *s, const void *from, size_t bytes)
{
    if (WEIR_LIKELY(weir__one_thread() && weir__stdio_copy_in(s, from, bytes)))
        return bytes;
    return write_locked(s, from, bytes);
}

static int fail_overflow(weir_stream *s)
{
    weir__enter(s);
    weir__stdio_fail_write(s, -EOVERFLOW);
    weir__leave(s);
    return 0;
}

size_t weir_stdio_fwrite(const void *from, size_t size, size_t count, weir_stream *s)
{
    size_t bytes = size * count;
    if (bytes == 0)
        return 0;
    if (bytes / size != count)
        return (size_t)fail_overflow(s);
    size_t accepted = write_bytes(s, from, bytes);
    return accepted == bytes ? count : accepted / size;
}

int weir_stdio_fputs(const char *string, weir_stream *s)
{
    size_t bytes = strlen(string);
    return bytes == 0 || write_bytes(s, string, bytes) == bytes ? 1 : EOF;
}

/* fprintf(s, "%s", string): formatting would copy the string byte by byte. */
int weir_stdio_print_string(weir_stream *s, ...)
{
    va_list arguments;
    va_start(arguments, s);
    const char *string = va_arg(arguments, const char *);
    va_end(arguments);
    size_t bytes = string ? strlen(string) : 0;
    if (bytes == 0 || bytes > INT_MAX)
        return weir_stdio_fprintf(s, "%s", string);
    return write_bytes(s, string, bytes) == bytes ? (int)bytes : -1;
}

static WEIR_NOINLINE int puts_locked(weir_stream *s, const char *string, size_t bytes)
{
    struct iovec parts[2] = {{(void *)(uintptr_t)string, bytes}, {(void *)(uintptr_t) "\n", 1}};
    weir__enter(s);
    size_t accepted = weir__stdio_write(s, parts, 2);
    weir__leave(s);
    return accepted == bytes + 1 ? 1 : EOF;
}

int weir_stdio_puts(const char *string)
{
    weir_stream *s = weir_stdio_known(1);
    size_t bytes = strlen(string);
    char *to;
    if (!WEIR_LIKELY(weir__one_thread() && bytes < weir__stdio_open_room(s, &to)))
        return puts_locked(s, string, bytes);
    memcpy(to, string, bytes);
    to[bytes] = '\n';
    weir__stdio_publish(s, to + bytes + 1);
    return 1;
}

int weir_stdio_putw(int word, weir_stream *s) { return weir_stdio_fwrite(&word, sizeof word, 1, s) == 1 ? 0 : EOF; }
