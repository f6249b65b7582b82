/* fprintf.c: formatted output, and perror. */
#include "stdio_private.h"

#include "../vformat.h"

/* Called through a volatile pointer, so that the compiler does not substitute the function of
 * _FORTIFY_SOURCE, which aborts the program for some formats. */
static int (*const volatile print_libc)(char **text, const char *format, va_list arguments) = vasprintf;
static int (*const volatile print_libc_parts)(FILE *file, const char *format, va_list arguments) = vfprintf;

/* Formats by the C library: %n, which libweir rejects, and unknown conversions. */
static int print_by_libc(weir_stream *s, const char *format, va_list arguments)
{
    char *text;
    int length = print_libc(&text, format, arguments);
    if (length < 0)
        return errno ? -errno : -EINVAL;
    struct iovec all = {text, (size_t)length};
    size_t accepted = weir__stdio_write(s, &all, 1);
    free(text);
    return accepted == (size_t)length ? length : -errno;
}

static ssize_t write_part(void *stream, const char *from, size_t bytes)
{
    struct iovec all = {(void *)(uintptr_t)from, bytes};
    return (ssize_t)weir__stdio_write(stream, &all, 1); /* 0 is an error */
}

/* Formats by the C library, a part at a time: a text that is longer than the largest buffer, or for
 * which there is no memory. */
static int print_in_parts(weir_stream *s, const char *format, va_list arguments)
{
    static const cookie_io_functions_t functions = {.write = write_part};
    FILE *file = fopencookie(s, "w", functions);
    if (!file)
        return errno ? -errno : -ENOMEM;
    int length = print_libc_parts(file, format, arguments), error = errno;
    if (fclose(file) != 0 && length >= 0) {
        length = -1;
        error = errno;
    }
    return length >= 0 ? length : error ? -error : -EIO;
}

/* A format error does not set the stream's error indicator. */
static int fail(weir_stream *s, int error)
{
    if (error == -EILSEQ || error == -EINVAL || error == -EOVERFLOW || error == -ENOMEM) {
        errno = -error;
        return -1;
    }
    return weir__stdio_fail_write(s, error);
}

/* Formats into the buffer if its room is open and suffices: the frequent case. Uses up the arguments. Returns the
 * length, or -1 with nothing appended. */
static inline int print_to_buffer(weir_stream *s, const char *format, struct weir__arguments *arguments)
{
    struct weir__text text = {.length = 0};
    text.room = weir__stdio_open_room(s, &text.to);
    if (text.room == 0 || weir__format_text(&text, format, arguments) != 0 || text.length > text.room)
        return -1;
    weir__stdio_publish(s, text.to + text.length);
    return (int)text.length;
}

static int print_held(weir_stream *s, const char *format, va_list arguments)
{
    int result = weir__stdio_start_writing(s);
    if (result == 0)
        result = weir_vprintf(s, format, arguments);
    if (result == -EINVAL)
        result = print_by_libc(s, format, arguments);
    else if (result == -EMSGSIZE || result == -ENOMEM)
        result = print_in_parts(s, format, arguments);
    if (result >= 0 && weir__state(s)->error) /* accepted, but its write failed */
        result = weir__state(s)->error;
    return result < 0 ? fail(s, result) : result;
}

static WEIR_NOINLINE int print_locked(weir_stream *s, const char *format, va_list arguments)
{
    int result = -1;
    weir__enter(s);
    if (!weir__one_thread()) {
        struct weir__arguments copy;
        va_copy(copy.list, arguments);
        result = print_to_buffer(s, format, &copy);
        va_end(copy.list);
    }
    if (result < 0)
        result = print_held(s, format, arguments);
    weir__leave(s);
    return result;
}

int weir_stdio_vfprintf(weir_stream *s, const char *format, va_list arguments)
{
    int result = -1;
    if (weir__one_thread()) {
        struct weir__arguments copy;
        va_copy(copy.list, arguments);
        result = print_to_buffer(s, format, &copy);
        va_end(copy.list);
    }
    return WEIR_LIKELY(result >= 0) ? result : print_locked(s, format, arguments);
}

int weir_stdio_vprintf(const char *format, va_list arguments)
{
    return weir_stdio_vfprintf(weir_stdio_known(1), format, arguments);
}

int weir_stdio_fprintf(weir_stream *s, const char *format, ...)
{
    struct weir__arguments arguments;
    int result = -1;
    va_start(arguments.list, format);
    if (weir__one_thread())
        result = print_to_buffer(s, format, &arguments);
    va_end(arguments.list);
    if (WEIR_LIKELY(result >= 0))
        return result;
    va_start(arguments.list, format);
    result = print_locked(s, format, arguments.list);
    va_end(arguments.list);
    return result;
}

int weir_stdio_printf(const char *format, ...)
{
    weir_stream *s = weir_stdio_known(1);
    struct weir__arguments arguments;
    int result = -1;
    va_start(arguments.list, format);
    if (weir__one_thread())
        result = print_to_buffer(s, format, &arguments);
    va_end(arguments.list);
    if (WEIR_LIKELY(result >= 0))
        return result;
    va_start(arguments.list, format);
    result = print_locked(s, format, arguments.list);
    va_end(arguments.list);
    return result;
}

void weir_stdio_perror(const char *message)
{
    int error = errno;
    bool named = message && *message;
    weir_stdio_fprintf(weir_stdio_known(2), "%s%s%s\n", named ? message : "", named ? ": " : "", strerror(error));
    errno = error;
}
