/* reserve.c: gives the caller room in the buffer, to be filled in place. */
#include "private.h"

static char *append_address(const weir_stream *s)
{
    return weir__config(s)->buffer + weir__written(s) + weir__state(s)->record_bytes;
}

/* Returns the bytes accepted since the opening. A flush does not change it. */
static uint64_t accepted_bytes(const weir_stream *s)
{
    const struct weir__state *state = weir__state(s);
    return state->stats.written_bytes + weir__pending(s) + state->record_bytes;
}

bool weir__has_reservation(const weir_stream *s)
{
    const struct weir__state *state = weir__state(s);
    return state->reserved && state->reserved == append_address(s) && state->reserved_accepted == accepted_bytes(s);
}

/* Returns how many bytes weir_commit may append: 0 without a reservation, or after a call that has changed the buffer. */
static size_t reserved_room(const weir_stream *s) { return weir__has_reservation(s) ? weir__room(s) : 0; }

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
    if (bytes > weir__room(s)) {
        uint64_t used = weir__written(s) + state->record_bytes;
        size_t wanted = config->sink->write ? used + bytes : used + bytes + config->capacity;
        result = weir__grow_write(s, wanted);
        if (result < 0)
            return result;
    }
    *to = append_address(s);
    state->reserved = *to;
    state->reserved_accepted = accepted_bytes(s);
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
    bool outside = bytes > reserved_room(s) && weir__config(s)->can_write && !weir__state(s)->reading;
    int result = outside ? -EINVAL : weir__commit_held(s, bytes);
    if (!outside)
        weir__state(s)->reserved = NULL;
    weir__leave(s);
    return result;
}
