/* fopencookie.c: streams over callbacks with the conventions of fopencookie(3). */
#include "stdio_private.h"

struct cookie {
    void *cookie;
    cookie_io_functions_t functions;
};

/* Callbacks may fail without setting errno. */
static int error_of(void) { return errno ? -errno : -EIO; }

static ssize_t cookie_read(void *context, void *to, size_t bytes)
{
    struct cookie *cookie = context;
    errno = 0;
    ssize_t got = cookie->functions.read ? cookie->functions.read(cookie->cookie, to, bytes) : 0;
    return got < 0 ? error_of() : (size_t)got > bytes ? -EIO : got;
}

static ssize_t cookie_write(void *context, const void *from, size_t bytes)
{
    struct cookie *cookie = context;
    if (!cookie->functions.write)
        return (ssize_t)bytes;
    errno = 0;
    ssize_t written = cookie->functions.write(cookie->cookie, from, bytes);
    return written <= 0 ? error_of() : (size_t)written > bytes ? (ssize_t)bytes : written;
}

static int64_t cookie_seek(void *context, int64_t offset, int whence)
{
    struct cookie *cookie = context;
    off_t position = (off_t)offset;
    errno = 0;
    if (cookie->functions.seek(cookie->cookie, &position, whence) < 0)
        return error_of();
    return position < 0 ? 0 : (int64_t)position; /* a function may leave a relative offset unchanged */
}

static int cookie_close(void *context)
{
    struct cookie *cookie = context;
    errno = 0;
    int result = cookie->functions.close ? cookie->functions.close(cookie->cookie) : 0;
    free(cookie);
    return result < 0 ? error_of() : 0;
}

weir_stream *weir_stdio_fopencookie(void *context, const char *mode, cookie_io_functions_t functions)
{
    struct weir_callbacks callbacks = {
        .read = cookie_read,
        .write = cookie_write,
        .seek = functions.seek ? cookie_seek : NULL,
        .close = cookie_close,
    };
    weir_stream *s = NULL;
    struct cookie *cookie = malloc(sizeof *cookie);
    if (!cookie)
        return weir__stdio_result(NULL, -ENOMEM);
    *cookie = (struct cookie){context, functions};
    enum weir_on_fork on_fork = mode[0] == 'r' && !strchr(mode, '+') ? WEIR_FORK_KEEP : WEIR_FORK_EMPTY;
    int result = weir__stdio_open_callbacks(&s, &callbacks, cookie, mode, on_fork);
    if (result < 0)
        free(cookie);
    return weir__stdio_result(s, result);
}
