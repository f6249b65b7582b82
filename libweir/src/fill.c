/* fill.c: the one read loop. All bytes that a stream reads from its source pass through it. */
#include "private.h"

enum {
    FAR_SEEKS_ARE_RANDOM = 3,
    /* The first read of a regular file. A program that needs only the beginning of the file causes no larger copy, and a program
     * that reads the whole file takes the same time as with a full first read (measured). */
    FIRST_BYTES = 16384,
};

void weir__discard_read(weir_stream *s)
{
    s->held_read_limit = weir__read_start(s);
    WEIR_STORE(&s->read, s->held_read_limit);
    weir__state(s)->pushed_back = false;
    weir__set_limits(s);
}

void weir__discard_for_write(weir_stream *s, int64_t end)
{
    struct weir__state *state = weir__state(s);
    int64_t bytes = (int64_t)(s->held_read_limit - weir__read_start(s));
    state->discards += weir__unread(s) > 0;
    state->discarded_from = end < bytes ? 0 : end - bytes;
    state->discarded_upto = end < bytes ? 0 : end;
    weir__discard_read(s);
}

int weir__start_reading(weir_stream *s)
{
    struct weir__config *config = weir__config(s);
    struct weir__state *state = weir__state(s);
    if (!config->can_read)
        return -EBADF;
    if (s->read < s->held_read_limit)
        return 1;
    if (state->read_error)
        return state->read_error;
    if (state->eof)
        return 0;
    if (config->can_write && config->seekable && !state->reading) {
        int result = weir__flush_held(s);
        if (result < 0)
            return result;
        state->reading = true;
        weir__set_limits(s);
    }
    return 1;
}

/* A failure does not keep the program from reading what the peer has sent: the error sticks, and after EAGAIN the bytes stay
 * pending. A seekable stream has been flushed by weir__start_reading. */
void weir__flush_before_read(weir_stream *s)
{
    const struct weir__config *config = weir__config(s);
    if (config->can_write && !config->seekable && (weir__pending(s) || weir__state(s)->record_bytes || config->uring))
        weir__flush_held(s);
}

/* Flushes the tied stream before a read that may block, so that a prompt is visible. */
static void flush_tied(weir_stream *s)
{
    weir_stream *tied = weir__config(s)->tied;
    if (tied && tied != s)
        weir_flush(tied);
}

static void advise(weir_stream *s)
{
    struct weir__config *config = weir__config(s);
    struct weir__state *state = weir__state(s);
    if (!config->regular || state->advised)
        return;
    if (config->access == WEIR_ACCESS_AUTO && state->stats.reads < 2 &&
        state->far_seeks < FAR_SEEKS_ARE_RANDOM)
        return; /* most files need one or two reads: do not add another system call */
    bool random = config->access == WEIR_ACCESS_RANDOM || state->far_seeks >= FAR_SEEKS_ARE_RANDOM;
    weir__kernel.fadvise(config->fd, 0, 0, random ? POSIX_FADV_RANDOM : POSIX_FADV_SEQUENTIAL);
    state->advised = true;
}

/* Ends the call of a thread that is cancelled in a read. Releases only the call's own lock: the caller's cleanup handler
 * releases one that the caller took by weir_lock. */
static void abandon_read(void *stream)
{
    weir_stream *s = stream;
    atomic_store_explicit(&weir__state(s)->in_read, false, memory_order_relaxed);
    weir__leave(s);
}

/* Returns whether a read may wait without end. A read of a file does not: exit waits for it, and then gives the read-ahead
 * bytes back. */
static bool may_block(const struct weir__config *config) { return !config->regular && !config->block_device; }

/* Reads once. A read of a pipe, a socket, a terminal or a callback may never return, so pthread_cancel can end it. */
static ssize_t read_sink(weir_stream *s, char *to, size_t bytes)
{
    const struct weir__config *config = weir__config(s);
    ssize_t got;
    if (!may_block(config)) {
        int cancel = weir__cancel_off();
        got = config->sink->read(s, to, bytes);
        weir__cancel_restore(cancel);
        return got;
    }
    pthread_cleanup_push(abandon_read, s);
    got = config->sink->read(s, to, bytes);
    pthread_cleanup_pop(0);
    return got;
}

static void begin_read(weir_stream *s)
{
    struct weir__state *state = weir__state(s);
    weir__note_thread();
    atomic_store_explicit(&state->reader, weir__this_thread(), memory_order_relaxed);
    if (may_block(weir__config(s)))
        atomic_store_explicit(&state->in_read, true, memory_order_release);
}

/* If another thread has begun to lock a stream that had no lock, it may use the stream while in_read is set: waits
 * for it. See enter_unshared in ending.c. */
static void end_read(weir_stream *s)
{
    struct weir__state *state = weir__state(s);
    if (!may_block(weir__config(s)))
        return;
    atomic_store_explicit(&state->in_read, false, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    if (WEIR_LIKELY(!atomic_load_explicit(&state->in_call, memory_order_relaxed) || !weir__locking(s)))
        return;
    atomic_store_explicit(&state->in_read, true, memory_order_release);
    weir__lock(&state->lock, s);
    atomic_store_explicit(&state->in_read, false, memory_order_relaxed);
    weir__unlock(&state->lock);
}

/* Reads once. Repeats after EINTR. */
static ssize_t read_loop(weir_stream *s, char *to, size_t bytes)
{
    struct weir__state *state = weir__state(s);
    weir__flush_before_read(s);
    flush_tied(s);
    advise(s);
    ssize_t got;
    do {
        state->stats.reads++;
        begin_read(s);
        got = read_sink(s, to, bytes);
        end_read(s);
        state->stats.interrupted += got == -EINTR;
    } while (got == -EINTR);
    if (got > 0) {
        state->stats.read_bytes += (uint64_t)got;
        if (state->pos >= 0)
            state->pos += got;
    } else if (got == 0) {
        state->eof = true;
    } else if (got == -EAGAIN || got == -EWOULDBLOCK) {
        state->stats.again++;
        got = -EAGAIN;
    } else {
        state->read_error = (int)got;
    }
    return got;
}

/* Notes that the buffer was consumed to its end: access is sequential, or has become so again. */
static void note_sequential(weir_stream *s)
{
    struct weir__state *state = weir__state(s);
    if (state->far_seeks >= FAR_SEEKS_ARE_RANDOM)
        state->advised = false;
    state->far_seeks = state->discards = 0;
}

/* Makes space behind the unread bytes: moves them to the start of the buffer if its end is reached, or
 * grows it. */
static int make_space(weir_stream *s)
{
    struct weir__config *config = weir__config(s);
    uint64_t start = weir__read_start(s), end = start + config->read_capacity;
    uint64_t unread = weir__unread(s);
    if (unread == 0) {
        if (s->held_read_limit > start)
            note_sequential(s);
        weir__discard_read(s);
        return 0;
    }
    if (s->held_read_limit < end)
        return 0;
    if (s->read > start && unread <= config->read_capacity / 2) {
        /* O_DIRECT: the unread bytes end where the next aligned block begins */
        uint64_t to = config->direct && unread <= config->read_start ? start - unread : start;
        memmove((char *)(uintptr_t)to, weir__next(s), unread);
        WEIR_STORE(&s->read, to);
        s->held_read_limit = to + unread;
        weir__set_limits(s);
        return 0;
    }
    return weir__grow_read(s, 0, unread * 2 > config->read_capacity ? unread * 2 : config->read_capacity);
}

/* Returns whether this is the first read of a file into a buffer of the default size, which alone is larger than bypass_bytes.
 * A program that has chosen a size gets reads of that size. */
static bool is_first_of_default_size(weir_stream *s)
{
    const struct weir__config *config = weir__config(s);
    return config->regular && config->access == WEIR_ACCESS_AUTO && !config->direct && !weir__state(s)->stats.reads &&
           config->bypass_bytes < config->read_capacity;
}

/* Returns how much one read may request. From a shared source that cannot be given back, no more than the
 * caller wants; from a file with random access, blocks instead of the whole buffer. */
static size_t request_size(weir_stream *s, size_t space, size_t want)
{
    const struct weir__config *config = weir__config(s);
    const struct weir__state *state = weir__state(s);
    size_t bytes = space;
    if (config->share && !config->seekable)
        bytes = want;
    else if (config->regular &&
             (config->access == WEIR_ACCESS_RANDOM || state->far_seeks >= FAR_SEEKS_ARE_RANDOM ||
              (config->access == WEIR_ACCESS_AUTO && state->discards >= FAR_SEEKS_ARE_RANDOM)))
        bytes = want > 4096 ? want : 4096;
    else if (is_first_of_default_size(s))
        bytes = want > FIRST_BYTES ? want : FIRST_BYTES;
    return bytes < space ? bytes : space;
}

ssize_t weir__fill(weir_stream *s, size_t want)
{
    struct weir__config *config = weir__config(s);
    if (!config->sink->read) {
        weir__state(s)->eof = true;
        return 0;
    }
    int result = make_space(s);
    if (result < 0)
        return result;
    size_t space = weir__read_start(s) + config->read_capacity - s->held_read_limit;
    ssize_t got = read_loop(s, (char *)(uintptr_t)s->held_read_limit, request_size(s, space, want));
    if (got > 0) {
        size_t skew = config->direct ? weir__direct_skew(config) : 0;
        WEIR_STORE(&s->read, s->read + skew);
        s->held_read_limit += skew + (uint64_t)got;
        weir__set_limits(s);
    }
    return got;
}

ssize_t weir__read_bypass(weir_stream *s, void *to, size_t bytes)
{
    weir__discard_read(s);
    return read_loop(s, to, bytes);
}

int weir__seek_back(weir_stream *s)
{
    struct weir__config *config = weir__config(s);
    struct weir__state *state = weir__state(s);
    int64_t unread = (int64_t)weir__unread(s);
    if (!config->seekable || unread == 0)
        return 0;
    if (!config->sink->seek)
        return -ESPIPE;
    state->stats.seeks++;
    int64_t pos = config->sink->seek(s, -unread, SEEK_CUR);
    if (pos == -EINVAL) /* weir_ungetc added more bytes than precede the position */
        pos = config->sink->seek(s, 0, SEEK_SET);
    state->pos = pos < 0 ? -1 : pos;
    if (pos < 0)
        return (int)pos;
    state->eof = false; /* the bytes can be read again */
    return 0;
}
