/* fflush.c: fflush, setvbuf and related functions. */
#include "stdio_private.h"

/* Flushes and seeks back over read-ahead bytes. Afterwards other users may move the position. */
static int flush_held(weir_stream *s)
{
    struct weir__config *config = weir__config(s);
    weir__stdio_take_errors(s);
    int result = weir__flush_held(s);
    if (result == 0 && config->can_read && config->seekable && config->sink->read) {
        result = weir__seek_back(s);
        weir__discard_read(s);
    }
    if (result == 0) {
        weir__stdio_publish_memstream(s);
        weir__state(s)->pos = -1;
    }
    return result;
}

/* Returns true if the stream has an open line limit, so that it has no error, and no pending bytes. This is the fast path of
 * programs that flush after each line, which is already written. */
static bool is_flushed(const weir_stream *s)
{
    const struct weir__config *config = weir__config(s);
    return WEIR_LOAD(&s->head.written) < weir__state(s)->line_limit && weir__pending(s) == 0 &&
           config->sink == &weir__sink_fd && !config->can_read;
}

int weir_stdio_fflush(weir_stream *s)
{
    if (s && weir__one_thread() && is_flushed(s)) {
        weir__state(s)->pos = -1; /* other users may move it now */
        return 0;
    }
    if (!s) {
        int first = weir_flush_all();
        errno = first < 0 ? -first : errno;
        return first < 0 ? EOF : 0;
    }
    weir__enter(s);
    int result = flush_held(s);
    if (result < 0)
        result = weir__stdio_fail_write(s, result);
    weir__leave(s);
    return result;
}

/* Unbuffered reads request exactly what the caller asked for. */
static int set_unbuffered(weir_stream *s)
{
    struct weir__config *config = weir__config(s);
    int result = flush_held(s);
    if (result == 0)
        result = weir_set_mode(s, WEIR_NONE, 0);
    if (result == 0 && config->can_read && config->sink->read)
        config->read_capacity = config->bypass_bytes = 1;
    return result;
}

static int set_buffered(weir_stream *s, enum weir_mode mode, size_t bytes)
{
    struct weir__config *config = weir__config(s);
    if (bytes > WEIR_BUFFER_MAX)
        bytes = WEIR_BUFFER_MAX;
    if (bytes == 0 && config->can_read && config->read_capacity == 1) /* the stream was unbuffered */
        bytes = weir__default_bytes(s, 0);
    weir__stdio_take_errors(s);
    return weir_set_mode(s, mode, bytes);
}

/* Does not use the caller's buffer, which C allows: its lifetime is a common bug. */
int weir_stdio_setvbuf(weir_stream *s, char *buffer, int mode, size_t bytes)
{
    (void)buffer;
    if (mode != _IOFBF && mode != _IOLBF && mode != _IONBF) {
        errno = EINVAL;
        return EOF;
    }
    weir__enter(s);
    int result = mode == _IONBF ? set_unbuffered(s) : set_buffered(s, mode == _IOLBF ? WEIR_LINE : WEIR_FULL, bytes);
    if (result < 0)
        result = weir__stdio_fail_write(s, result);
    weir__leave(s);
    return result;
}

void weir_stdio_setbuffer(weir_stream *s, char *buffer, size_t bytes)
{
    weir_stdio_setvbuf(s, buffer, buffer ? _IOFBF : _IONBF, bytes);
}

void weir_stdio_setbuf(weir_stream *s, char *buffer) { weir_stdio_setbuffer(s, buffer, BUFSIZ); }
void weir_stdio_setlinebuf(weir_stream *s) { weir_stdio_setvbuf(s, NULL, _IOLBF, 0); }
