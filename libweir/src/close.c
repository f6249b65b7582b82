/* close.c: closes a stream and reports every error that it met. */
#include "private.h"

static int first_error(int a, int b) { return a < 0 ? a : b < 0 ? b : 0; }

/* Closes the descriptor even after an error: close(2) may have released the number, which can already
 * belong to another file. */
int weir__close_sink(weir_stream *s)
{
    struct weir__config *config = weir__config(s);
    if (config->uring)
        weir__uring_free(s);
    if (config->direct)
        weir__direct_free(s);
    if (config->lock_file)
        weir__file_lock_close(s);
    int result = config->keep_open || !config->sink->close ? 0 : config->sink->close(s);
    weir__remove_temporary(s);
    weir__peek_source_close(s);
    return result;
}

/* Syncs the last bytes as well if the durability promises it for each record. */
int weir__close_flush(weir_stream *s)
{
    struct weir__config *config = weir__config(s);
    int result = weir__flush_held(s);
    if (result == 0 && config->can_write && config->durability >= WEIR_DATA)
        result = weir__sync_held(s, config->durability);
    bool lent =
        config->keep_open || !config->path; /* other users of the descriptor continue at this position */
    if (result == 0 && config->can_read && config->seekable && !config->share && lent)
        result = weir__seek_back(s);
    return result;
}

static int close_lost(weir_stream *s, uint64_t *lost_bytes)
{
    weir__enter(s);
    struct weir__config *config = weir__config(s);
    int result = weir__close_flush(s);
    uint64_t lost = config->sink->write ? weir__pending(s) + weir__state(s)->record_bytes : 0;
    if (config->uring)
        lost += weir__uring_remaining(s, true);
    if (lost_bytes)
        *lost_bytes = lost;
    if (result == -EAGAIN) {
        weir__leave(s);
        return result;
    }
    result = first_error(weir__state(s)->error, first_error(result, weir__sync_error(s)));
    result = first_error(result, weir__state(s)->read_error);
    weir__leave(s);
    weir__unregister(s);
    int closed = weir__close_sink(s);
    if (config->spill)
        weir__spill_free(s, lost > 0);
    weir__free(s);
    return first_error(result, closed);
}

int weir_close_lost(weir_stream *s, uint64_t *lost_bytes)
{
    int cancel = weir__cancel_off();
    int result = close_lost(s, lost_bytes);
    weir__cancel_restore(cancel);
    return result;
}

int weir_close(weir_stream *s) { return weir_close_lost(s, NULL); }
