/* put.c: appends text: weir_printf and the calls without a format. */
#include "private.h"

#include <limits.h>
#include <stdio.h>

#include "format.h"

/* Returns the address for max_bytes in the buffer; NULL if the limit sends the call to the slow path, or the room is too small. */
static char *reserve_fast(weir_stream *s, size_t max_bytes)
{
    uint64_t at = WEIR_LOAD(&s->head.written), limit = WEIR_LOAD(&s->limit);
    return at < limit && limit - at >= max_bytes ? (char *)(uintptr_t)at : NULL;
}

static void publish(weir_stream *s, size_t bytes)
{
    WEIR_PUBLISH(&s->head.written, WEIR_LOAD(&s->head.written) + bytes);
}

static int append_text(weir_stream *s, const char *text, size_t bytes)
{
    struct iovec all = {(char *)(uintptr_t)text, bytes};
    weir__enter(s);
    ssize_t result = weir__write_whole(s, &all, 1);
    weir__leave(s);
    return (int)result;
}

int weir_put_u64(weir_stream *s, uint64_t value)
{
    char text[WEIR_INT_BYTES], *to = reserve_fast(s, WEIR_INT_BYTES);
    size_t bytes = weir__format_u64(to ? to : text, value);
    if (!to)
        return append_text(s, text, bytes);
    publish(s, bytes);
    return (int)bytes;
}

int weir_put_i64(weir_stream *s, int64_t value)
{
    char text[WEIR_INT_BYTES], *to = reserve_fast(s, WEIR_INT_BYTES);
    size_t bytes = weir__format_i64(to ? to : text, value);
    if (!to)
        return append_text(s, text, bytes);
    publish(s, bytes);
    return (int)bytes;
}

/* A sign, 309 digits, a point, and `precision` digits. */
static int put_long_fixed(weir_stream *s, double value, int precision)
{
    size_t room = 320 + (size_t)precision;
    char *text = malloc(room);
    if (!text)
        return -ENOMEM;
    int result = append_text(s, text, weir__format_fixed(text, room, value, precision));
    free(text);
    return result;
}

int weir_put_f64(weir_stream *s, double value, int precision)
{
    enum { MAX_TEXT = 352 };
    if (precision < WEIR_SHORTEST || precision > INT_MAX - 512)
        return -EINVAL;
    if (precision > MAX_TEXT - 320)
        return put_long_fixed(s, value, precision);
    char text[MAX_TEXT], *to = reserve_fast(s, MAX_TEXT), *at = to ? to : text;
    size_t bytes =
        precision < 0 ? weir__format_shortest(at, value) : weir__format_fixed(at, MAX_TEXT, value, precision);
    if (!to)
        return append_text(s, text, bytes);
    publish(s, bytes);
    return (int)bytes;
}

ssize_t weir_put_str(weir_stream *s, const char *string)
{
    size_t bytes = strlen(string);
    char *to = reserve_fast(s, bytes);
    if (!to) {
        struct iovec all = {(char *)(uintptr_t)string, bytes};
        weir__enter(s);
        ssize_t result = weir__write_whole(s, &all, 1);
        weir__leave(s);
        return result;
    }
    memcpy(to, string, bytes);
    publish(s, bytes);
    return (ssize_t)bytes;
}

/* Formats a text that does not fit the buffer in allocated memory. */
static int print_long(weir_stream *s, size_t bytes, const char *format, va_list arguments)
{
    if (bytes > WEIR_BUFFER_MAX)
        return -EMSGSIZE;
    char *text = malloc(bytes);
    if (!text)
        return -ENOMEM;
    ssize_t needed = weir__vformat(text, bytes, format, arguments);
    if (needed >= 0) {
        struct iovec all = {text, (size_t)needed};
        needed = weir__write_whole(s, &all, 1);
    }
    free(text);
    return (int)needed;
}

static int print_held(weir_stream *s, const char *format, va_list arguments)
{
    struct weir__config *config = weir__config(s);
    int result = weir__start_writing(s);
    if (result < 0)
        return result;
    char *to = config->buffer + weir__written(s) + weir__state(s)->record_bytes;
    va_list again;
    va_copy(again, arguments);
    ssize_t needed = weir__vformat(to, weir__room(s), format, arguments);
    if (needed > 0 && (size_t)needed > weir__room(s))
        needed = print_long(s, (size_t)needed, format, again);
    else if (needed > 0)
        weir__commit_held(s, (size_t)needed); /* accepted: a write error sticks */
    va_end(again);
    return (int)needed;
}

int weir_vprintf(weir_stream *s, const char *format, va_list arguments)
{
    weir__enter(s);
    int result = print_held(s, format, arguments);
    weir__leave(s);
    return result;
}

int weir_printf(weir_stream *s, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int result = weir_vprintf(s, format, arguments);
    va_end(arguments);
    return result;
}
