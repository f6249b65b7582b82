/* fclose.c: fclose and pclose; closes a stream, or the file of a stream that stays. */
#include "stdio_private.h"

#include <sys/wait.h>
#include <unistd.h>

static int first_error(int a, int b) { return a < 0 ? a : b; }

int weir__stdio_close_flush(weir_stream *s)
{
    struct weir__config *config = weir__config(s);
    weir__stdio_take_errors(s);
    int first = config->stdio_write_error;
    int result = weir__close_flush(s);
    if (result == 0 && config->can_read && config->sink->read)
        weir__discard_read(s); /* its bytes were given back; a second time would seek too far */
    return first_error(first, result);
}

int weir__stdio_replace(weir_stream *s, weir_stream *new_stream, bool keep_descriptor)
{
    int cancel = weir__cancel_off();
    weir__unregister(s); /* other threads cannot find it meanwhile */
    weir_lock(s);
    int result = weir__stdio_close_flush(s);
    weir__config(s)->keep_open = keep_descriptor;
    result = first_error(result, weir__close_sink(s));
    weir__move_stream(s, new_stream);
    weir_unlock(s);
    weir__register(s); /* if this fails, exit does not flush the stream */
    weir__cancel_restore(cancel);
    return result;
}

static int close_standard(weir_stream *s)
{
    weir_stream *closed;
    int result = weir__stdio_closed_stream(&closed);
    return result < 0 ? result : weir__stdio_replace(s, closed, false);
}

/* Closes the stream in any case, even if its descriptor would block. */
static int close_any(weir_stream *s)
{
    weir__enter(s);
    int result = weir__stdio_close_flush(s);
    weir__leave(s);
    int closed = weir_close(s);
    if (closed != -EAGAIN)
        return first_error(result, closed);
    weir__state(s)->error = -EIO;
    weir_close(s);
    return -EAGAIN;
}

static int wait_for(int child, int *status)
{
    int64_t result;
    do
        result = WEIR_CALL(waitpid(child, status, 0));
    while (result == -EINTR);
    return result < 0 ? (int)result : 0;
}

int weir_stdio_fclose(weir_stream *s)
{
    int child = weir__config(s)->child, status;
    int result = weir__is_standard(s) ? close_standard(s) : close_any(s);
    if (child)
        result = first_error(result, wait_for(child, &status));
    if (result == 0)
        return 0;
    errno = -result;
    return EOF;
}

int weir_stdio_pclose(weir_stream *s)
{
    int child = weir__config(s)->child, status = 0;
    if (!child) {
        errno = EINVAL;
        return -1;
    }
    close_any(s); /* the result is the command's status */
    int result = wait_for(child, &status);
    if (result == 0)
        return status;
    errno = -result;
    return -1;
}
