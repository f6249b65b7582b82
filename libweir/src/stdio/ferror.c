/* ferror.c: the indicators of a stream, and errno. */
#include "stdio_private.h"

int weir__stdio_fail(weir_stream *s, int64_t error)
{
    weir__own(s)->stdio_failed = true;
    errno = (int)-error;
    return EOF;
}

int weir__stdio_fail_write(weir_stream *s, int64_t error)
{
    struct weir__own *own = weir__own(s);
    if (!own->stdio_write_error && own->can_write) /* there never was anything to be written by it */
        own->stdio_write_error = (int)error;
    return weir__stdio_fail(s, error);
}

void weir__stdio_take_over(weir_stream *s)
{
    struct weir__hot *hot = weir__hot(s);
    struct weir__own *own = weir__own(s);
    if (!hot->error && !hot->read_error)
        return;
    own->stdio_failed = true;
    if (!own->stdio_write_error)
        own->stdio_write_error = hot->error;
    hot->error = hot->read_error = 0;
    weir__set_limits(s);
}

int weir_stdio_ferror(weir_stream *s) { return weir_error(s) != 0 || weir__own(s)->stdio_failed; }
int weir_stdio_feof(weir_stream *s) { return weir_eof(s); }
void weir_stdio_clearerr(weir_stream *s) { weir_clear(s); }

int weir_stdio_fileno(weir_stream *s)
{
    int fd = weir_fd(s);
    if (fd >= 0)
        return fd;
    errno = EBADF;
    return -1;
}
