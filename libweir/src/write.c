/* write.c: appends bytes: the slow path of weir_putc, weir_write, weir_writev. */
#include "private.h"

#include <limits.h>

/* Switches a stream for both directions to writing: gives read-ahead bytes back, because the file has one
 * position. */
static int switch_to_writing(weir_stream *s)
{
    struct weir__state *state = weir__state(s);
    int64_t end = state->pos;
    int result = weir__seek_back(s);
    if (result < 0)
        return result;
    weir__discard_for_write(s, end);
    state->reading = false;
    state->eof = false;
    if (weir__config(s)->direct)
        weir__direct_align_capacity(s);
    weir__set_limits(s);
    return 0;
}

int weir__start_writing(weir_stream *s)
{
    struct weir__config *config = weir__config(s);
    struct weir__state *state = weir__state(s);
    if (!config->can_write && !state->error)
        state->error = -EBADF; /* sticks, so that it is enough to check the last call */
    if (state->error)
        return state->error;
    int result = state->reading ? switch_to_writing(s) : config->spill ? weir__spill_append_begin(s) : 0;
    if (result == 0 && config->stale_ms && !state->armed)
        result = weir__stale_arm(s);
    return result;
}

/* Writes pending bytes and then the caller's bytes, without copying them. Returns how many of the latter
 * were written, or the error if none was. */
static ssize_t write_bypass(weir_stream *s, const struct iovec *iov, int count)
{
    size_t done = 0;
    int result = weir__write_out(s, weir__written(s), iov, count, &done);
    if (weir__pending(s) == 0)
        weir__reset(s);
    if (result == 0)
        result = weir__sync_record(s);
    return done ? (ssize_t)done : result;
}

static void copy_in(weir_stream *s, const char *from, size_t bytes)
{
    memcpy(weir__config(s)->buffer + weir__written(s), from, bytes);
    weir__publish(s, bytes);
}

/* Returns how many of the caller's bytes are written without a copy. Copying a whole buffer's worth gains
 * nothing. */
static size_t bypass_length(weir_stream *s, const char *from, size_t bytes)
{
    const struct weir__config *config = weir__config(s);
    if (!config->sink->write || bytes < config->bypass_bytes)
        return 0;
    return config->direct ? weir__direct_write_bypass(s, from, bytes) : bytes;
}

/* Fills the buffer completely before it is drained, so that files are written in whole blocks. */
static ssize_t write_full(weir_stream *s, const char *from, size_t bytes)
{
    struct weir__config *config = weir__config(s);
    size_t done = 0;
    while (done < bytes) {
        size_t room = weir__room(s), left = bytes - done;
        size_t bypass = bypass_length(s, from + done, left);
        if (bypass) {
            struct iovec rest = {(char *)(uintptr_t)from + done, bypass};
            ssize_t accepted = write_bypass(s, &rest, 1);
            if (accepted > 0)
                done += (size_t)accepted;
            if (accepted < (ssize_t)bypass)
                return done ? (ssize_t)done : accepted;
            continue;
        }
        if (left <= room) {
            copy_in(s, from + done, left);
            return (ssize_t)bytes;
        }
        copy_in(s, from + done, room);
        done += room;
        int result = config->sink->write ? weir__drain_async(s) : weir__grow_write(s, config->capacity * 2);
        if (result < 0)
            return done ? (ssize_t)done : result;
    }
    return (ssize_t)done;
}

/* Copies short lines behind the pending bytes, so that write(2) takes both, which costs less than writev(2). They are not
 * published: if the write fails, they are not accepted. */
static void join_to_pending(weir_stream *s, struct iovec *lines)
{
    enum { SHORT = 512 }; /* a copy of this size costs less than the second entry of writev(2) */
    const struct weir__config *config = weir__config(s);
    if (weir__pending(s) && lines->iov_len <= SHORT && lines->iov_len <= weir__room(s) && !config->direct)
        lines->iov_base = memcpy(config->buffer + weir__written(s), lines->iov_base, lines->iov_len);
}

/* Writes complete lines at once, behind pending bytes, and appends the rest. */
static ssize_t write_lines(weir_stream *s, const char *from, size_t bytes)
{
    struct weir__config *config = weir__config(s);
    const char *end = config->separator < 0 ? NULL : memrchr(from, config->separator, bytes);
    size_t lines = end ? (size_t)(end - from) + 1 : 0;
    if (!lines || !config->sink->write)
        return write_full(s, from, bytes);
    struct iovec whole = {(char *)(uintptr_t)from, lines};
    weir__enter(s); /* a recursive lock, as in write_each */
    join_to_pending(s, &whole);
    ssize_t accepted = write_bypass(s, &whole, 1), rest = 0;
    if (accepted == (ssize_t)lines && lines < bytes)
        rest = write_full(s, from + lines, bytes - lines);
    weir__leave(s);
    return rest < 0 ? accepted : accepted + rest;
}

ssize_t weir__write_held(weir_stream *s, const void *from, size_t bytes)
{
    struct weir__config *config = weir__config(s);
    int result = weir__start_writing(s);
    if (result < 0)
        return result;
    if (bytes > SSIZE_MAX)
        return -EINVAL;
    if (bytes == 0)
        return 0;
    if (config->mode == WEIR_RECORD)
        return weir__record_append(s, &(struct iovec){(void *)(uintptr_t)from, bytes}, 1);
    if (config->mode == WEIR_LINE)
        return write_lines(s, from, bytes);
    if ((config->mode == WEIR_NONE || config->durability >= WEIR_KERNEL) && config->sink->write) {
        struct iovec all = {(void *)(uintptr_t)from, bytes};
        return write_bypass(s, &all, 1);
    }
    return write_full(s, from, bytes);
}

/* Writes the entries in order, until one is not accepted completely. The recursive lock keeps a sync of one
 * entry from letting other threads in (sync.c). */
static ssize_t write_each(weir_stream *s, const struct iovec *iov, int count)
{
    ssize_t done = 0, accepted = 0;
    weir__enter(s);
    for (int i = 0; i < count; i++) {
        accepted = weir__write_held(s, iov[i].iov_base, iov[i].iov_len);
        done += accepted > 0 ? accepted : 0;
        if (accepted < (ssize_t)iov[i].iov_len)
            break;
    }
    weir__leave(s);
    return done ? done : accepted;
}

ssize_t weir__write_parts(weir_stream *s, const struct iovec *iov, int count, size_t total)
{
    struct weir__config *config = weir__config(s);
    if (config->mode == WEIR_RECORD)
        return weir__record_append(s, iov, count);
    bool whole = total >= config->bypass_bytes &&
                 !config->direct; /* O_DIRECT needs aligned blocks, which the copy makes */
    bool bypass = config->mode == WEIR_NONE ||
                  (config->mode == WEIR_FULL && (whole || config->durability >= WEIR_KERNEL));
    if (bypass && config->sink->write)
        return write_bypass(s, iov, count);
    return write_each(s, iov, count);
}

WEIR_COLD static int putc_unbuffered(weir_stream *s, int c)
{
    char byte = (char)c;
    ssize_t accepted = weir__write_held(s, &byte, 1);
    return accepted == 1 ? (unsigned char)c : (int)accepted;
}

static int putc_slow_held(weir_stream *s, int c)
{
    struct weir__config *config = weir__config(s);
    int result = weir__start_writing(s);
    if (result < 0)
        return result;
    if (config->mode != WEIR_LINE && config->mode != WEIR_FULL)
        return putc_unbuffered(s, c);
    if (config->durability >= WEIR_KERNEL && config->mode == WEIR_FULL)
        return putc_unbuffered(s, c);
    if (config->mode == WEIR_LINE && (unsigned char)c == config->separator)
        return putc_unbuffered(s, c);
    if (weir__room(s) == 0) {
        result = config->sink->write ? weir__drain_async(s) : weir__grow_write(s, config->capacity * 2);
        if (weir__room(s) == 0)
            return result;
    }
    copy_in(s, &(char){(char)c}, 1);
    return (unsigned char)c;
}

ssize_t weir__end_line(weir_stream *s)
{
    char *to = weir__config(s)->buffer + weir__written(s);
    struct iovec end = {to, 1};
    *to = (char)weir__state(s)->line_end;
    return write_bypass(s, &end, 1);
}

static WEIR_COLD int putc_enter(weir_stream *s, int c)
{
    weir__enter(s);
    int result = putc_slow_held(s, c);
    weir__leave(s);
    return result;
}

/* Also locks if the caller holds the lock, or is the only thread: the timer may use the stream. */
int weir_putc_held(weir_stream *s, int c) { return putc_enter(s, c); }

static inline int store_byte(weir_stream *s, uint64_t at, int c)
{
    *(char *)(uintptr_t)at = (char)c;
    WEIR_PUBLISH(&s->head.written, at + 1);
    return (unsigned char)c;
}

/* Requires the lock, and releases it. */
static WEIR_NOINLINE int putc_slow_unlock(weir_stream *s, int c)
{
    int result = putc_slow_held(s, c);
    weir__leave(s);
    return result;
}

/* Makes calls as the last action only, so that it saves no registers. */
static WEIR_NOINLINE int putc_locked(weir_stream *s, int c)
{
    struct weir__lock *lock = &weir__state(s)->lock;
    if (!__atomic_load_n(&weir__state(s)->locking, __ATOMIC_ACQUIRE) || !weir__lock_acquire(lock))
        return putc_enter(s, c);
    uint64_t at = WEIR_LOAD(&s->head.written);
    if (!WEIR_LIKELY(at < s->held_limit))
        return putc_slow_unlock(s, c);
    int result = store_byte(s, at, c);
    return weir__lock_release_fast(lock) ? result : weir__lock_release_slow(lock, result);
}

/* Threads that share a stream call this for every byte: it handles the common case with the least work. In
 * a process with one thread no other thread can have the lock. */
int weir_putc_slow(weir_stream *s, int c)
{
    uint64_t at = WEIR_LOAD(&s->head.written);
    if (WEIR_LIKELY(weir__one_thread() && at < s->held_limit))
        return store_byte(s, at, c);
    return putc_locked(s, c);
}

ssize_t weir_write_slow(weir_stream *s, const void *from, size_t bytes)
{
    weir__enter(s);
    ssize_t result = weir__write_held(s, from, bytes);
    weir__leave(s);
    return result;
}

/* Writes data that does not fit without a copy, unless copying makes aligned blocks or lets io_uring work
 * in the background. */
static ssize_t writev_held(weir_stream *s, const struct iovec *iov, int count, size_t total)
{
    struct weir__config *config = weir__config(s);
    bool copied = config->direct || (config->uring && total < config->capacity);
    if (config->mode == WEIR_FULL && total > weir__room(s) && config->sink->write && !copied)
        return write_bypass(s, iov, count);
    return weir__write_parts(s, iov, count, total);
}

ssize_t weir_writev(weir_stream *s, const struct iovec *iov, int count)
{
    ssize_t total = count < 0 ? -EINVAL : weir__iov_length(iov, count);
    if (total < 0)
        return total;
    weir__enter(s);
    ssize_t result = weir__start_writing(s);
    if (result == 0 && total > 0)
        result = writev_held(s, iov, count, (size_t)total);
    weir__leave(s);
    return result;
}
