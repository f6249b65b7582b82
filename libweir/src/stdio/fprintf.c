/* fprintf.c: formatted output, and perror. */
#include "stdio_private.h"

/* Called through a volatile pointer, so that the compiler does not substitute the function of
 * _FORTIFY_SOURCE, which aborts the program for some formats. */
static int (*const volatile print_libc)(char **text, const char *format, va_list arguments) = vasprintf;

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

/* A format error does not set the stream's error indicator. */
static int fail(weir_stream *s, int error)
{
    if (error == -EILSEQ || error == -EINVAL || error == -EOVERFLOW || error == -ENOMEM) {
        errno = -error;
        return -1;
    }
    return weir__stdio_fail_write(s, error);
}

static int print_held(weir_stream *s, const char *format, va_list arguments)
{
    int result = weir__stdio_start_writing(s);
    if (result == 0)
        result = weir_vprintf(s, format, arguments);
    if (result == -EINVAL)
        result = print_by_libc(s, format, arguments);
    if (result >= 0 && weir__state(s)->error) /* accepted, but its write failed */
        result = weir__state(s)->error;
    return result < 0 ? fail(s, result) : result;
}

int weir_stdio_vfprintf(weir_stream *s, const char *format, va_list arguments)
{
    weir__enter(s);
    int result = print_held(s, format, arguments);
    weir__leave(s);
    return result;
}

int weir_stdio_vprintf(const char *format, va_list arguments)
{
    return weir_stdio_vfprintf(weir_stdio_standard(1), format, arguments);
}

int weir_stdio_fprintf(weir_stream *s, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int result = weir_stdio_vfprintf(s, format, arguments);
    va_end(arguments);
    return result;
}

int weir_stdio_printf(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int result = weir_stdio_vfprintf(weir_stdio_standard(1), format, arguments);
    va_end(arguments);
    return result;
}

void weir_stdio_perror(const char *message)
{
    int error = errno;
    bool named = message && *message;
    weir_stdio_fprintf(weir_stdio_standard(2), "%s%s%s\n", named ? message : "", named ? ": " : "", strerror(error));
    errno = error;
}
