/* flush.c: writes everything accepted to the sink. */
#include "private.h"

int weir__publish_begun(weir_stream *s)
{
    struct weir__config *config = weir__config(s);
    struct weir__state *state = weir__state(s);
    if (config->can_write && !config->sink->write)
        return 0;
    if (state->error)
        return state->error;
    uint64_t bytes = state->record_bytes;
    if (bytes) {
        state->record_bytes = 0;
        weir__publish(s, bytes);
    }
    return 0;
}

int weir__flush_published(weir_stream *s)
{
    struct weir__config *config = weir__config(s);
    int result = 0;
    if (config->can_write && config->sink->write) {
        result = weir__state(s)->error ? weir__state(s)->error : weir__drain(s);
        if (result == 0 && config->sink->finish)
            result = config->sink->finish(s);
    }
    if (result == 0 && config->share && config->can_read) {
        result = weir__seek_back(s);
        if (result == 0 && config->seekable)
            weir__discard_read(s);
    }
    return result;
}

int weir__flush_held(weir_stream *s)
{
    int result = weir__publish_begun(s);
    return result < 0 ? result : weir__flush_published(s);
}

int weir_flush(weir_stream *s)
{
    weir__enter(s);
    int result = weir__flush_held(s);
    weir__leave(s);
    return result;
}

/* Flushes a stream of another thread that threads do not share. Returns -EAGAIN if that thread stays in a call and bytes are
 * pending: only the thread itself may then use the stream. */
static int flush_unshared(weir_stream *s)
{
    struct weir__owner_wait owner_wait;
    weir__owner_wait_begin(&owner_wait);
    if (!weir__enter_for_flush(s, &owner_wait))
        return weir__pending(s) ? -EAGAIN : 0;
    int result = weir__flush_in_place(s);
    weir__leave_after_flush(s);
    return result;
}

/* Cancellation is off: a thread that is cancelled while it waits for another thread's call would keep a reference to the stream. */
int weir_flush_all(void)
{
    weir_stream *s;
    int first = 0, cancel = weir__cancel_off();
    for (size_t slot = 0; (s = weir__ref_next(&slot)) != NULL; weir__unref(s)) {
        const struct weir__config *config = weir__config(s);
        if (!config->can_write && !config->share)
            continue;
        bool unshared = !config->threads && !weir__one_thread() && s->magic == WEIR_STREAM_MAGIC;
        int result = unshared ? flush_unshared(s) : weir_flush(s);
        if (first == 0)
            first = result;
    }
    weir__cancel_restore(cancel);
    return first;
}
