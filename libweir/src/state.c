/* state.c: errors, the end of the input, statistics, and the public lock. */
#include "private.h"

int weir_error(weir_stream *s)
{
    weir__enter(s);
    const struct weir__state *state = weir__state(s);
    int sync_error = weir__sync_error(s);
    int result = state->error ? state->error : state->read_error ? state->read_error : sync_error;
    weir__leave(s);
    return result;
}

int weir_eof(weir_stream *s)
{
    weir__enter(s);
    int result = weir__state(s)->eof && weir__unread(s) == 0;
    weir__leave(s);
    return result;
}

void weir_clear(weir_stream *s)
{
    weir__enter(s);
    struct weir__state *state = weir__state(s);
    state->error = state->read_error = 0;
    state->eof = false;
    weir__config(s)->stdio_failed = false;
    weir__config(s)->stdio_write_error = 0;
    weir__set_limits(s);
    weir__leave(s);
}

int weir_get_stats(weir_stream *s, struct weir_stats *stats)
{
    weir__enter(s);
    const struct weir__config *config = weir__config(s);
    const struct weir__state *state = weir__state(s);
    *stats = state->stats;
    stats->pending_bytes = weir__pending(s) + state->record_bytes;
    if (config->uring) {
        uint64_t left = weir__uring_remaining(s, false);
        stats->pending_bytes += left;
        stats->written_bytes -= left;
    }
    stats->unread_bytes = weir__unread(s);
    stats->buffer_bytes = config->capacity;
    stats->read_buffer_bytes = config->read_capacity;
    stats->error = state->error ? state->error : state->read_error;
    stats->sync_error = weir__sync_error(s);
    stats->mode = config->mode;
    stats->durability = config->durability;
    weir__leave(s);
    return 0;
}

void weir_lock(weir_stream *s)
{
    if (!WEIR_LIKELY(s->magic == WEIR_STREAM_MAGIC))
        weir__reinit(s);
    weir__note_thread(); /* the program may sleep before it unlocks */
    weir__lock(&weir__state(s)->lock, s);
}

int weir_trylock(weir_stream *s)
{
    if (!WEIR_LIKELY(s->magic == WEIR_STREAM_MAGIC))
        weir__reinit(s);
    weir__note_thread();
    return weir__trylock(&weir__state(s)->lock) ? 0 : -EBUSY;
}

void weir_unlock(weir_stream *s) { weir__unlock(&weir__state(s)->lock); }
