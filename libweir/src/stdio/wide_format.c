/* wide_format.c: wprintf. The C library formats the text in memory; not by open_wmemstream(3), to which musl's vfwprintf
 * writes no numbers. */
#include "stdio_private.h"

enum { FIRST_ROOM = 256, MAX_ROOM = 1 << 28 }; /* characters */

/* Returns whether vswprintf(3) failed for want of room: errno is then unchanged in glibc before 2.37, or one of these. */
static bool was_too_small(int error) { return error == 0 || error == EOVERFLOW || error == E2BIG; }

/* Formats into *text, which has room for FIRST_ROOM characters, or into allocated memory, to which *text then points.
 * Returns the number of characters, or -1 with errno set. */
static int format_text(wchar_t **text, const wchar_t *format, va_list arguments)
{
    wchar_t *first = *text;
    int before = errno, result = -1;
    for (size_t room = FIRST_ROOM;; room *= 4) {
        va_list again;
        va_copy(again, arguments);
        errno = 0;
        result = vswprintf(*text, room, format, again);
        va_end(again);
        if (result >= 0 || !was_too_small(errno))
            break;
        if (*text != first)
            free(*text);
        *text = room < MAX_ROOM ? malloc(4 * room * sizeof **text) : NULL;
        if (!*text) {
            errno = room < MAX_ROOM ? ENOMEM : EOVERFLOW;
            return -1;
        }
    }
    errno = result < 0 ? errno : before;
    return result;
}

static int print_held(weir_stream *s, const wchar_t *format, va_list arguments)
{
    wchar_t room[FIRST_ROOM], *text = room;
    int result = format_text(&text, format, arguments);
    if (result >= 0 && !weir__stdio_put_wide(s, text, (size_t)result))
        result = -1;
    int error = errno;
    if (text != room)
        free(text);
    errno = error;
    return result;
}

int weir_stdio_vfwprintf(weir_stream *s, const wchar_t *format, va_list arguments)
{
    weir__enter(s);
    int result = weir__config(s)->can_write ? print_held(s, format, arguments) : weir__stdio_fail(s, -EBADF);
    weir__leave(s);
    return result;
}

int weir_stdio_vwprintf(const wchar_t *format, va_list arguments)
{
    return weir_stdio_vfwprintf(weir_stdio_known(1), format, arguments);
}

int weir_stdio_fwprintf(weir_stream *s, const wchar_t *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int result = weir_stdio_vfwprintf(s, format, arguments);
    va_end(arguments);
    return result;
}

int weir_stdio_wprintf(const wchar_t *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int result = weir_stdio_vfwprintf(weir_stdio_known(1), format, arguments);
    va_end(arguments);
    return result;
}
