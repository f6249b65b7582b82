/* state.c: what a stream says of itself. */
#include "private.h"

int weir_error(weir_stream *s)
{
    weir__enter(s);
    const struct weir__hot *hot = weir__hot(s);
    int sync_error = weir__own(s)->sync_error;
    int result = hot->error ? hot->error : hot->read_error ? hot->read_error : sync_error;
    weir__leave(s);
    return result;
}

int weir_eof(weir_stream *s)
{
    weir__enter(s);
    int result = weir__hot(s)->eof && weir__unread(s) == 0;
    weir__leave(s);
    return result;
}

void weir_clear(weir_stream *s)
{
    weir__enter(s);
    struct weir__hot *hot = weir__hot(s);
    hot->error = hot->read_error = 0;
    hot->eof = false;
    weir__own(s)->stdio_failed = false;
    weir__own(s)->stdio_write_error = 0;
    weir__set_limits(s);
    weir__leave(s);
}

int weir_get_stats(weir_stream *s, struct weir_stats *stats)
{
    weir__enter(s);
    const struct weir__own *own = weir__own(s);
    const struct weir__hot *hot = weir__hot(s);
    *stats = hot->stats;
    stats->pending_bytes = weir__pending(s) + hot->record_bytes;
    if (own->uring) {
        uint64_t left = weir__uring_left(s, false);
        stats->pending_bytes += left;
        stats->written_bytes -= left;
    }
    stats->unread_bytes = weir__unread(s);
    stats->buffer_bytes = own->capacity;
    stats->read_buffer_bytes = own->read_capacity;
    stats->error = hot->error ? hot->error : hot->read_error;
    stats->sync_error = own->sync_error;
    stats->mode = own->mode;
    stats->durability = own->durability;
    weir__leave(s);
    return 0;
}

void weir_lock(weir_stream *s)
{
    if (!WEIR_LIKELY(s->magic == WEIR_STREAM_MAGIC))
        weir__adopt(s);
    weir__lock(&weir__hot(s)->lock, s);
}

int weir_trylock(weir_stream *s)
{
    if (!WEIR_LIKELY(s->magic == WEIR_STREAM_MAGIC))
        weir__adopt(s);
    return weir__trylock(&weir__hot(s)->lock) ? 0 : -EBUSY;
}

void weir_unlock(weir_stream *s) { weir__unlock(&weir__hot(s)->lock); }
