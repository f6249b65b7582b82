/* close.c: the end of a stream, and everything that went wrong with it. */
#include "private.h"

static int first_of(int a, int b) { return a < 0 ? a : b < 0 ? b : 0; }

/* The descriptor goes in any case: after close(2) failed, its number may be another file's. */
int weir__let_go(weir_stream *s)
{
    struct weir__own *own = weir__own(s);
    if (own->uring)
        weir__uring_free(s);
    if (own->direct)
        weir__direct_free(s);
    int result = own->keep_open || !own->sink->close ? 0 : own->sink->close(s);
    weir__remove_temporary(s);
    weir__look_ahead_end(s);
    return result;
}

/* What the stream promises for each record holds for the last bytes as well. */
int weir__finish(weir_stream *s)
{
    struct weir__own *own = weir__own(s);
    int result = weir__flush_held(s);
    if (result == 0 && own->can_write && own->durability >= WEIR_DATA)
        result = weir__sync_held(s, own->durability);
    bool lent = own->keep_open || !own->path; /* others may have the descriptor */
    if (result == 0 && own->can_read && own->seekable && !own->share && lent)
        result = weir__give_back(s);
    return result;
}

int weir_close_lost(weir_stream *s, uint64_t *lost_bytes)
{
    weir__enter(s);
    struct weir__own *own = weir__own(s);
    int result = weir__finish(s);
    uint64_t lost = own->sink->write ? weir__pending(s) + weir__hot(s)->record_bytes : 0;
    if (own->uring)
        lost += weir__uring_left(s, true);
    if (lost_bytes)
        *lost_bytes = lost;
    if (result == -EAGAIN) {
        weir__leave(s);
        return result;
    }
    result = first_of(weir__hot(s)->error, first_of(result, own->sync_error));
    result = first_of(result, weir__hot(s)->read_error);
    weir__leave(s);
    weir__unregister(s);
    int closed = weir__let_go(s);
    if (own->spill)
        weir__spill_free(s, lost > 0);
    weir__free(s);
    return first_of(result, closed);
}

int weir_close(weir_stream *s) { return weir_close_lost(s, NULL); }
