/* reserve.c: gives the caller room in the buffer, to be filled in place. */
#include "private.h"

ssize_t weir__reserve_held(weir_stream *s, char **to, size_t bytes)
{
    struct weir__config *config = weir__config(s);
    struct weir__state *state = weir__state(s);
    int result = weir__start_writing(s);
    if (result < 0)
        return result;
    if (bytes > WEIR_BUFFER_MAX)
        return -EMSGSIZE;
    bytes += bytes == 0; /* 0 means any room, but at least one byte */
    if (bytes > weir__room(s)) {
        result = config->sink->write ? weir__drain_async(s) : 0;
        if (result < 0)
            return result;
    }
    uint64_t used = weir__written(s) + state->record_bytes;
    if (bytes > weir__room(s)) {
        size_t wanted = config->sink->write ? used + bytes : used + bytes + config->capacity;
        result = weir__grow_write(s, wanted);
        if (result < 0)
            return result;
    }
    *to = config->buffer + used;
    return (ssize_t)weir__room(s);
}

int weir__commit_held(weir_stream *s, size_t bytes)
{
    struct weir__config *config = weir__config(s);
    struct weir__state *state = weir__state(s);
    if (!config->can_write || state->reading)
        return -EBADF;
    if (bytes > weir__room(s))
        return -EINVAL;
    if (config->mode == WEIR_RECORD) {
        weir__record_commit(s, bytes);
        return 0;
    }
    uint64_t from = weir__written(s);
    weir__publish(s, bytes);
    weir__after_append(s, from); /* accepted: a write error sticks */
    return 0;
}

ssize_t weir_reserve(weir_stream *s, char **to, size_t bytes)
{
    weir__enter(s);
    ssize_t result = weir__reserve_held(s, to, bytes);
    weir__leave(s);
    return result;
}

int weir_commit(weir_stream *s, size_t bytes)
{
    weir__enter(s);
    int result = weir__commit_held(s, bytes);
    weir__leave(s);
    return result;
}
