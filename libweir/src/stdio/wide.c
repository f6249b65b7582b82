/* wide.c: wide characters, which are bytes in the encoding of the locale. Wide and byte calls may alternate. */
#include "stdio_private.h"

#include <limits.h>

int weir_stdio_fwide(weir_stream *s, int mode)
{
    weir__enter(s);
    struct weir__config *config = weir__config(s);
    const struct weir_stats *stats = &weir__state(s)->stats;
    bool used = weir__written(s) || stats->written_bytes || stats->read_bytes || weir__unread(s);
    if (!config->stdio_wide)
        config->stdio_wide = used || mode < 0 ? -1 : mode > 0;
    int result = config->stdio_wide;
    weir__leave(s);
    return result;
}

void weir__stdio_use_wide(weir_stream *s)
{
    if (!weir__config(s)->stdio_wide)
        weir__config(s)->stdio_wide = 1;
}

/* ---- reading ---- */

static void put_back(weir_stream *s, const char *bytes, size_t count)
{
    while (count > 0)
        weir__ungetc_held(s, (unsigned char)bytes[--count]);
}

wint_t weir__stdio_get_wide(weir_stream *s, char *bytes, size_t *count)
{
    mbstate_t shift;
    wchar_t c = 0;
    memset(&shift, 0, sizeof shift);
    for (*count = 0; *count < MB_LEN_MAX;) {
        int status = weir__stdio_fill(s);
        if (status < 0 || (status == 0 && *count == 0))
            break;
        size_t used = (size_t)-1; /* the input ends inside of a character */
        if (status > 0) {
            char byte = (char)weir__consume_byte(s);
            bytes[(*count)++] = byte;
            used = mbrtowc(&c, &byte, 1, &shift);
        }
        if (used == (size_t)-1) {
            weir__stdio_fail(s, -EILSEQ);
            break;
        }
        if (used != (size_t)-2)
            return (wint_t)c;
    }
    int error = errno;
    put_back(s, bytes, *count);
    errno = error;
    return WEOF;
}

wint_t weir_stdio_fgetwc(weir_stream *s)
{
    char bytes[MB_LEN_MAX];
    size_t count;
    weir__enter(s);
    weir__stdio_use_wide(s);
    wint_t c = weir__stdio_get_wide(s, bytes, &count);
    weir__leave(s);
    return c;
}

wchar_t *weir_stdio_fgetws(wchar_t *to, int room, weir_stream *s)
{
    char bytes[MB_LEN_MAX];
    size_t count, length = 0, max = room > 0 ? (size_t)room - 1 : 0;
    wint_t c = 0;
    if (room <= 0)
        return NULL;
    weir__enter(s);
    weir__stdio_use_wide(s);
    bool failed = weir__config(s)->stdio_failed;
    weir__config(s)->stdio_failed = false;
    while (length < max && c != L'\n' && (c = weir__stdio_get_wide(s, bytes, &count)) != WEOF)
        to[length++] = (wchar_t)c;
    bool fails = weir__config(s)->stdio_failed && errno != EAGAIN;
    weir__config(s)->stdio_failed |= failed;
    weir__leave(s);
    if ((length == 0 && max > 0) || fails)
        return NULL;
    to[length] = L'\0';
    return to;
}

wint_t weir__stdio_unget_wide(weir_stream *s, wint_t c)
{
    char bytes[MB_LEN_MAX];
    mbstate_t shift;
    memset(&shift, 0, sizeof shift);
    size_t count = wcrtomb(bytes, (wchar_t)c, &shift);
    if (count == (size_t)-1)
        return WEOF;
    for (size_t left = count; left > 0; left--) {
        int result = weir__ungetc_held(s, (unsigned char)bytes[left - 1]);
        if (result < 0) {
            weir__stdio_fail(s, result);
            return WEOF;
        }
    }
    return c;
}

wint_t weir_stdio_ungetwc(wint_t c, weir_stream *s)
{
    if (c == WEOF)
        return WEOF;
    weir__enter(s);
    weir__stdio_use_wide(s);
    weir__stdio_take_errors(s);
    wint_t result = weir__stdio_unget_wide(s, c);
    weir__leave(s);
    return result;
}

/* ---- writing ---- */

/* Stores the bytes of a character. Returns their number, or 0 if the encoding has no such character. */
static size_t encode(const weir_stream *s, char *to, wchar_t c)
{
    mbstate_t shift;
    if (weir__config(s)->stdio_wide_memory) {
        memcpy(to, &c, sizeof c);
        return sizeof c;
    }
    memset(&shift, 0, sizeof shift);
    size_t bytes = wcrtomb(to, c, &shift);
    return bytes == (size_t)-1 ? 0 : bytes;
}

static bool write_part(weir_stream *s, char *part, size_t bytes)
{
    struct iovec all = {part, bytes};
    return bytes == 0 || weir__stdio_copy_in(s, part, bytes) || weir__stdio_write(s, &all, 1) == bytes;
}

bool weir__stdio_put_wide(weir_stream *s, const wchar_t *from, size_t count)
{
    char part[512];
    size_t bytes = 0;
    weir__stdio_use_wide(s);
    for (size_t i = 0; i < count; i++) {
        if (sizeof part - bytes < MB_LEN_MAX) {
            if (!write_part(s, part, bytes))
                return false;
            bytes = 0;
        }
        size_t more = encode(s, part + bytes, from[i]);
        if (more == 0) {
            if (write_part(s, part, bytes))
                weir__stdio_fail(s, -EILSEQ);
            return false;
        }
        bytes += more;
    }
    return write_part(s, part, bytes);
}

wint_t weir_stdio_fputwc(wchar_t c, weir_stream *s)
{
    weir__enter(s);
    bool done = weir__stdio_put_wide(s, &c, 1);
    weir__leave(s);
    return done ? (wint_t)c : WEOF;
}

int weir_stdio_fputws(const wchar_t *string, weir_stream *s)
{
    weir__enter(s);
    bool done = weir__stdio_put_wide(s, string, wcslen(string));
    weir__leave(s);
    return done ? 1 : EOF;
}
