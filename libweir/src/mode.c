/* mode.c: changes the mode and the buffer of an open stream. */
#include "private.h"

/* Publishes an incomplete record, which becomes plain bytes. */
static uint64_t publish_record(weir_stream *s)
{
    uint64_t begun = weir__state(s)->record_bytes;
    weir__state(s)->record_bytes = 0;
    weir__publish(s, begun);
    return begun;
}

/* Makes the newest `begun` bytes an incomplete record again, unless a part of them was written. */
static void take_record_back(weir_stream *s, uint64_t begun)
{
    struct weir_head *head = weir__head(s);
    if (!begun || weir__pending(s) < begun)
        return;
    weir__state(s)->record_bytes = begun;
    WEIR_PUBLISH(&head->written, WEIR_LOAD(&head->written) - begun);
}

/* Writes the pending bytes that the new mode would already have written. */
static int apply_mode(weir_stream *s, enum weir_mode mode)
{
    struct weir__config *config = weir__config(s);
    enum weir_mode before = config->mode;
    uint64_t begun = mode == WEIR_RECORD ? 0 : publish_record(s);
    config->mode = mode;
    int result = config->can_write && config->sink->write ? weir__after_append(s, weir__drained(s)) : 0;
    if (result == 0 && config->uring && mode != WEIR_FULL)
        result = config->sink->finish(s);
    if (result < 0) {
        config->mode = before;
        take_record_back(s, begun);
    }
    return result;
}

static int set_mode_held(weir_stream *s, enum weir_mode mode, size_t bytes)
{
    struct weir__config *config = weir__config(s);
    if (mode > WEIR_RECORD || bytes > WEIR_BUFFER_MAX)
        return -EINVAL;
    if (mode == WEIR_AUTO)
        mode = config->fd == 2 ? WEIR_NONE : config->terminal ? WEIR_LINE : WEIR_FULL;
    int result = 0;
    if (config->can_write && config->sink->write && bytes)
        result = weir__drain(s);
    if (result == 0 && bytes && config->can_write && bytes != config->capacity)
        result = weir__grow_write(s, bytes);
    if (result == 0 && bytes && config->can_read && config->read_buffer && weir__unread(s) <= bytes &&
        config->sink->read)
        result = weir__grow_read(s, 0, bytes);
    if (result == 0)
        result = apply_mode(s, mode);
    if (result == 0 && bytes)
        config->bypass_bytes = bytes;
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

static bool has_been_used(const weir_stream *s)
{
    const struct weir__state *state = weir__state(s);
    return weir__written(s) || state->record_bytes || weir__unread(s) || state->stats.writes ||
           state->stats.reads;
}

static int set_buffer_held(weir_stream *s, enum weir_mode mode, void *buffer, size_t bytes)
{
    struct weir__config *config = weir__config(s);
    if (has_been_used(s))
        return -EBUSY;
    if (!buffer || !bytes)
        return set_mode_held(s, mode, bytes);
    if (config->spill || config->uring || config->direct || bytes > WEIR_BUFFER_MAX)
        return -EINVAL;
    if (config->can_read && config->can_write && bytes < 2)
        return -EINVAL; /* too small to divide; checked before the old buffer is freed */
    if (!config->sink->write && !config->sink->read)
        return -EINVAL; /* a memory stream's buffer is its data */
    struct weir_options options = {.buffer = buffer, .buffer_bytes = bytes};
    weir__buffers_free(s);
    int result = weir__buffers_init(s, &options, bytes);
    weir__buffers_set_pointers(s);
    weir__discard_read(s);
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
    struct weir__config *config = weir__config(s);
    weir__enter(s);
    weir__lock(&weir__state(s)->lock, s); /* from here on the timer may access the stream */
    __atomic_store_n(&config->stale_ms, stale_ms, __ATOMIC_RELAXED);
    if (stale_ms)
        weir__set_locking(s);
    weir__state(s)->armed = false; /* the next append arms it with the new delay */
    weir__state(s)->deadline = weir__state(s)->quiet_ns = 0;
    int result = stale_ms && config->can_write && weir__pending(s) ? weir__stale_arm(s) : 0;
    weir__set_limits(s);
    weir__unlock(&weir__state(s)->lock);
    weir__leave(s);
    return result;
}

enum weir_mode weir_get_mode(weir_stream *s) { return weir__config(s)->mode; }
