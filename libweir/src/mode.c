/* mode.c: changing when bytes leave, in the life of a stream. */
#include "private.h"

/* What waits and would have gone out by now in the new mode goes first. */
static int begin_mode(weir_stream *s, enum weir_mode mode)
{
    struct weir__own *own = weir__own(s);
    enum weir_mode before = own->mode;
    own->mode = mode;
    int result = own->can_write && own->sink->write ? weir__after_append(s, weir__drained(s)) : 0;
    if (result == 0 && own->uring && mode != WEIR_FULL)
        result = own->sink->finish(s);
    if (result < 0)
        own->mode = before;
    return result;
}

static int set_mode_held(weir_stream *s, enum weir_mode mode, size_t bytes)
{
    struct weir__own *own = weir__own(s);
    struct weir__hot *hot = weir__hot(s);
    if (mode > WEIR_RECORD || bytes > WEIR_BUFFER_MAX)
        return -EINVAL;
    if (mode == WEIR_AUTO)
        mode = own->fd == 2 ? WEIR_NONE : own->terminal ? WEIR_LINE : WEIR_FULL;
    if (hot->record_bytes && mode != WEIR_RECORD) { /* the begun record is now just bytes */
        uint64_t begun = hot->record_bytes;
        hot->record_bytes = 0;
        weir__publish(s, begun);
    }
    int result = 0;
    if (own->can_write && own->sink->write && bytes)
        result = weir__drain(s);
    if (result == 0 && bytes && own->can_write && bytes != own->capacity)
        result = weir__grow_write(s, bytes);
    if (result == 0 && bytes && own->can_read && own->read_buffer && weir__unread(s) <= bytes &&
        own->sink->read)
        result = weir__grow_read(s, 0, bytes);
    if (result == 0)
        result = begin_mode(s, mode);
    if (result == 0 && bytes)
        own->past_bytes = bytes;
    weir__set_limits(s);
    return result;
}

int weir_set_mode(weir_stream *s, enum weir_mode mode, size_t buffer_bytes)
{
    weir__enter(s);
    int result = set_mode_held(s, mode, buffer_bytes);
    weir__leave(s);
    return result;
}

static bool used(const weir_stream *s)
{
    const struct weir__hot *hot = weir__hot(s);
    return weir__written(s) || hot->record_bytes || weir__unread(s) || hot->stats.writes || hot->stats.reads;
}

static int set_buffer_held(weir_stream *s, enum weir_mode mode, void *buffer, size_t bytes)
{
    struct weir__own *own = weir__own(s);
    if (used(s))
        return -EBUSY;
    if (!buffer || !bytes)
        return set_mode_held(s, mode, bytes);
    if (own->spill || own->uring || own->direct || bytes > WEIR_BUFFER_MAX)
        return -EINVAL;
    if (own->can_read && own->can_write && bytes < 2)
        return -EINVAL; /* a half for each; nothing has been given up yet */
    if (!own->sink->write && !own->sink->read)
        return -EINVAL; /* its memory is what it is about */
    struct weir_options options = {.buffer = buffer, .buffer_bytes = bytes};
    weir__buffers_free(s);
    int result = weir__buffers_make(s, &options, bytes);
    weir__buffers_point(s);
    weir__drop_read(s);
    return result < 0 ? result : set_mode_held(s, mode, 0);
}

int weir_set_buffer(weir_stream *s, enum weir_mode mode, void *buffer, size_t buffer_bytes)
{
    weir__enter(s);
    int result = set_buffer_held(s, mode, buffer, buffer_bytes);
    weir__leave(s);
    return result;
}

int weir_set_stale(weir_stream *s, unsigned stale_ms)
{
    struct weir__own *own = weir__own(s);
    weir__enter(s);
    bool locked = own->locking;
    if (!locked) /* from here on the timer may come */
        weir__lock(&weir__hot(s)->lock, s);
    __atomic_store_n(&own->stale_ms, stale_ms, __ATOMIC_RELAXED);
    own->locking = own->locking || stale_ms; /* never back: a timer that was armed may still come */
    weir__hot(s)->armed = false; /* and it does not know of this delay: the next byte tells it */
    int result = stale_ms && own->can_write && weir__pending(s) ? weir__stale_arm(s) : 0;
    weir__set_limits(s);
    weir__unlock(&weir__hot(s)->lock);
    return result;
}

enum weir_mode weir_get_mode(weir_stream *s) { return weir__own(s)->mode; }
