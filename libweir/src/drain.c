/* drain.c: the one write loop. All bytes that leave a stream pass through it. */
#include "private.h"

#include <limits.h>

enum { MAX_IOV = 1024 }; /* UIO_MAXIOV of Linux */

/* A write(2) of more than PIPE_BUF bytes to a pipe may be interleaved with another writer's. Therefore one
 * write takes whole records up to that size, or one larger record. */
uint64_t weir__whole_records(const weir_stream *s, const char *from, uint64_t bytes)
{
    int separator = weir__config(s)->separator;
    if (bytes <= PIPE_BUF || separator < 0)
        return bytes;
    const char *end = memrchr(from, separator, PIPE_BUF);
    if (!end)
        end = memchr(from + PIPE_BUF, separator, bytes - PIPE_BUF);
    return end ? (uint64_t)(end - from) + 1 : bytes;
}

/* Appends bytes to `vector`, which has `used` entries, or extends its last entry if they follow it in memory. Returns
 * the number of entries. */
static int add_entry(struct iovec *vector, int used, char *from, size_t bytes)
{
    if (used && (char *)vector[used - 1].iov_base + vector[used - 1].iov_len == from) {
        vector[used - 1].iov_len += bytes;
        return used;
    }
    vector[used] = (struct iovec){from, bytes};
    return used + 1;
}

/* Collects the remaining bytes in `vector`, the buffer's first. Returns the number of entries. */
static int gather(weir_stream *s, uint64_t upto, const struct iovec *more, int count, size_t skip,
                  struct iovec *vector)
{
    const struct weir__config *config = weir__config(s);
    uint64_t drained = weir__drained(s);
    int used = 0;
    if (drained < upto) {
        char *from = config->buffer + drained;
        uint64_t bytes = upto - drained;
        if (config->is_pipe && config->mode == WEIR_RECORD)
            bytes = weir__whole_records(s, from, bytes);
        used = add_entry(vector, used, from, bytes);
        if (config->is_pipe && config->mode == WEIR_RECORD)
            return used;
    }
    for (int i = 0; i < count && used < MAX_IOV; i++) {
        if (skip >= more[i].iov_len) {
            skip -= more[i].iov_len;
            continue;
        }
        used = add_entry(vector, used, (char *)more[i].iov_base + skip, more[i].iov_len - skip);
        skip = 0;
    }
    return used;
}

static uint64_t length_of(const struct iovec *vector, int count)
{
    uint64_t bytes = 0;
    for (int i = 0; i < count; i++)
        bytes += vector[i].iov_len;
    return bytes;
}

/* Accounts for a write of `written` out of `requested` bytes, the buffer's bytes first. */
static void account_write(weir_stream *s, uint64_t upto, uint64_t written, uint64_t requested,
                          size_t *more_done)
{
    struct weir__state *state = weir__state(s);
    uint64_t drained = weir__drained(s), pending = upto > drained ? upto - drained : 0;
    uint64_t of_buffer = written < pending ? written : pending;
    state->stats.written_bytes += written;
    state->stats.short_writes += written < requested;
    if (state->pos >= 0)
        state->pos = weir__config(s)->append ? -1 : state->pos + (int64_t)written;
    WEIR_PUBLISH(&weir__head(s)->drained, drained + of_buffer);
    if (weir__config(s)->spill)
        weir__spill_write_end(s, written - of_buffer);
    *more_done += written - of_buffer;
}

int weir__fail(weir_stream *s, ssize_t error)
{
    struct weir__state *state = weir__state(s);
    if (weir__config(s)->spill)
        weir__spill_write_end(s, 0);
    if (error == -EAGAIN || error == -EWOULDBLOCK) {
        state->stats.again++;
        return -EAGAIN;
    }
    state->error = (int)error;
    weir__set_limits(s);
    return (int)error;
}

static int write_loop(weir_stream *s, uint64_t upto, const struct iovec *more, int count, size_t *more_done,
                      bool wait)
{
    struct weir__state *state = weir__state(s);
    struct weir__config *config = weir__config(s);
    ssize_t (*write)(weir_stream *, const struct iovec *, int) =
        wait || !config->sink->write_now ? config->sink->write : config->sink->write_now;
    struct iovec vector[count < MAX_IOV ? count + 1 : MAX_IOV];
    /* else `vector` may have only the first of the bytes */
    bool has_all = count < MAX_IOV && !config->direct && !(config->is_pipe && config->mode == WEIR_RECORD);
    for (;;) {
        int used = gather(s, upto, more, count, *more_done, vector);
        if (config->direct)
            used = weir__direct_trim(s, vector, used);
        uint64_t requested = length_of(vector, used);
        if (requested == 0)
            return 0;
        if (config->spill)
            weir__spill_write_begin(
                s, requested < upto - weir__drained(s) ? requested : upto - weir__drained(s), requested);
        state->stats.writes++;
        ssize_t written = write(s, vector, used);
        if (written > 0)
            account_write(s, upto, (uint64_t)written, requested, more_done);
        if (written == (ssize_t)requested && has_all)
            return 0;
        if (written > 0)
            continue;
        if (written == -EINTR)
            state->stats.interrupted++;
        else /* a sink that returns 0 would make this an endless loop */
            return weir__fail(s, written ? written : -EIO);
    }
}

/* Returns whether one write of the pending bytes alone is enough: no other bytes, no record, no spill file, no alignment. */
static inline bool is_plain(const weir_stream *s, int count, bool wait)
{
    const struct weir__config *config = weir__config(s);
    return count == 0 && wait && config->mode != WEIR_RECORD && !config->spill && !config->direct;
}

/* As write_loop, for the case of is_plain. It is faster for programs that write each line at once. */
static int write_plain(weir_stream *s, uint64_t upto, size_t *more_done)
{
    struct weir__state *state = weir__state(s);
    uint64_t drained = weir__drained(s), requested = upto - drained;
    struct iovec vector = {weir__config(s)->buffer + drained, requested};
    state->stats.writes++;
    ssize_t written = weir__config(s)->sink->write(s, &vector, 1);
    if (written > 0)
        account_write(s, upto, (uint64_t)written, requested, more_done);
    if (WEIR_LIKELY(written == (ssize_t)requested))
        return 0;
    if (written <= 0 && written != -EINTR)
        return weir__fail(s, written ? written : -EIO);
    state->stats.interrupted += written == -EINTR;
    return write_loop(s, upto, NULL, 0, more_done, true);
}

static int write_with_file_lock(weir_stream *s, uint64_t upto, const struct iovec *more, int count,
                                size_t *more_done, bool wait)
{
    int result = weir__file_lock(s, wait);
    if (result < 0)
        return !wait && result == -EAGAIN ? result : weir__fail(s, result);
    uint64_t drained = weir__drained(s);
    size_t done = *more_done;
    weir__state(s)->pos = -1;
    result = write_loop(s, upto, more, count, more_done, wait);
    if (result < 0)
        weir__file_take_back(s, drained, more, done, more_done);
    weir__file_unlock(s);
    return result;
}

static int write_out(weir_stream *s, uint64_t upto, const struct iovec *more, int count, size_t *more_done,
                     bool wait)
{
    if (weir__state(s)->error)
        return weir__state(s)->error;
    if (upto <= weir__drained(s) && count == 0)
        return 0; /* a forked child that closes its copy must not release the lock of its parent */
    int cancel = weir__cancel_off();
    weir__note_thread();
    atomic_store_explicit(&weir__state(s)->writer, weir__this_thread(), memory_order_relaxed);
    int result;
    if (weir__config(s)->lock_file)
        result = write_with_file_lock(s, upto, more, count, more_done, wait);
    else if (is_plain(s, count, wait))
        result = write_plain(s, upto, more_done);
    else
        result = write_loop(s, upto, more, count, more_done, wait);
    atomic_store_explicit(&weir__state(s)->writer, 0, memory_order_relaxed);
    weir__cancel_restore(cancel);
    return result;
}

int weir__write_out(weir_stream *s, uint64_t upto, const struct iovec *more, int count, size_t *more_done)
{
    return write_out(s, upto, more, count, more_done, true);
}

int weir__write_out_now(weir_stream *s, uint64_t upto)
{
    size_t none = 0;
    return write_out(s, upto, NULL, 0, &none, false);
}

void weir__reset(weir_stream *s)
{
    struct weir_head *head = weir__head(s);
    struct weir__config *config = weir__config(s);
    uint64_t bytes = weir__written(s), record = weir__state(s)->record_bytes;
    const char *record_start = config->buffer + bytes;
    if (bytes > 0) {
        WEIR_PUBLISH(&head->written, head->base);
        if (config->spill)
            weir__spill_reset(s, bytes);
        WEIR_PUBLISH(&head->drained, 0);
        atomic_thread_fence(memory_order_release); /* the next bytes are not visible before the offsets */
        if (config->uring)
            weir__uring_swap(s);
        if (record)
            memmove(config->buffer, record_start, record);
    }
    if (config->direct)
        weir__direct_align_capacity(s);
}

int weir__drain_to(weir_stream *s, uint64_t upto)
{
    size_t none = 0;
    int result = weir__write_out(s, upto, NULL, 0, &none);
    if (weir__pending(s) == 0)
        weir__reset(s);
    return result;
}

int weir__drain(weir_stream *s) { return weir__drain_to(s, weir__written(s)); }

int weir__drain_async(weir_stream *s)
{
    struct weir__uring *uring = weir__config(s)->uring;
    if (uring)
        weir__uring_allow_async(uring, true);
    int result = weir__drain(s);
    if (uring)
        weir__uring_allow_async(uring, false);
    return result;
}

/* Returns the end of the last complete line at or after offset `from`, or 0 if there is none. */
static uint64_t last_line(const weir_stream *s, uint64_t from)
{
    const struct weir__config *config = weir__config(s);
    uint64_t written = weir__written(s);
    const char *end =
        config->separator < 0 ? NULL : memrchr(config->buffer + from, config->separator, written - from);
    return end ? (uint64_t)(end - config->buffer) + 1 : 0;
}

int weir__after_append(weir_stream *s, uint64_t from)
{
    struct weir__config *config = weir__config(s);
    uint64_t upto = 0;
    if (config->mode == WEIR_NONE || config->mode == WEIR_RECORD)
        upto = weir__written(s);
    else if (config->mode == WEIR_LINE)
        upto = last_line(s, from);
    if (config->durability >= WEIR_KERNEL)
        upto = config->mode == WEIR_LINE ? upto : weir__written(s);
    else if (config->mode == WEIR_RECORD && !(config->is_pipe && config->separator < 0))
        upto = 0;
    if (upto <= weir__drained(s))
        return 0;
    int result = weir__drain_to(s, upto);
    return result < 0 ? result : weir__sync_record(s);
}
