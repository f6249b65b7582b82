/* read.c: weir_read, weir_read_some, weir_peek, weir_skip, weir_ungetc, and the slow path of weir_getc. */
#include "private.h"

#include <limits.h>

static void consume(weir_stream *s, void *to, size_t bytes)
{
    if (to)
        memcpy(to, weir__next(s), bytes);
    WEIR_STORE(&s->read, s->read + bytes);
}

int weir__getc_refill(weir_stream *s)
{
    int result = weir__start_reading(s);
    if (result <= 0)
        return result < 0 ? result : WEIR_EOF;
    if (s->read == s->held_read_limit) {
        ssize_t got = weir__fill(s, 1);
        if (got <= 0)
            return got < 0 ? (int)got : WEIR_EOF;
    }
    return weir__consume_byte(s);
}

static WEIR_COLD int getc_enter(weir_stream *s)
{
    weir__enter(s);
    int result = s->read < s->held_read_limit ? weir__consume_byte(s) : weir__getc_refill(s);
    weir__leave(s);
    return result;
}

static WEIR_NOINLINE int getc_slow_unlock(weir_stream *s)
{
    int result = weir__getc_refill(s);
    weir__leave(s);
    return result;
}

/* See putc_locked in write.c. */
static WEIR_NOINLINE int getc_locked(weir_stream *s)
{
    struct weir__lock *lock = &weir__state(s)->lock;
    if (!__atomic_load_n(&weir__state(s)->locking, __ATOMIC_ACQUIRE) || !weir__lock_acquire(lock))
        return getc_enter(s);
    if (!WEIR_LIKELY(s->read < s->held_read_limit))
        return getc_slow_unlock(s);
    int c = weir__consume_byte(s);
    return weir__lock_release_fast(lock) ? c : weir__lock_release_slow(lock, c);
}

/* See weir_putc_held in write.c. */
int weir_getc_held(weir_stream *s) { return getc_enter(s); }

/* See weir_putc_slow in write.c: threads that share a stream call this for every byte. */
int weir_getc_slow(weir_stream *s)
{
    if (WEIR_LIKELY(weir__one_thread() && s->read < s->held_read_limit))
        return weir__consume_byte(s);
    return getc_locked(s);
}

/* Reads at least one byte: from the buffer, or by one read. Large requests bypass the buffer. `to` NULL:
 * discards the bytes. */
static ssize_t read_step(weir_stream *s, char *to, size_t bytes)
{
    struct weir__config *config = weir__config(s);
    int result = weir__start_reading(s);
    if (result <= 0)
        return result;
    uint64_t unread = weir__unread(s);
    if (unread == 0) {
        bool bypass = to && bytes >= config->bypass_bytes && config->sink->read;
        if (bypass && (!config->direct || weir__direct_can_read_bypass(s, to, bytes)))
            return weir__read_bypass(s, to, bytes);
        ssize_t got = weir__fill(s, bytes);
        if (got <= 0)
            return got;
        unread = (uint64_t)got;
    }
    size_t part = bytes < unread ? bytes : unread;
    consume(s, to, part);
    return (ssize_t)part;
}

ssize_t weir__read_held(weir_stream *s, char *to, size_t bytes)
{
    size_t done = 0;
    if (!weir__config(s)->can_read)
        return -EBADF;
    while (done < bytes) {
        ssize_t got = read_step(s, to ? to + done : NULL, bytes - done);
        if (got < 0)
            return done ? (ssize_t)done : got;
        if (got == 0)
            break;
        done += (size_t)got;
    }
    return (ssize_t)done;
}

ssize_t weir_read(weir_stream *s, void *to, size_t bytes)
{
    if (bytes > SSIZE_MAX)
        return -EINVAL;
    weir__enter(s);
    ssize_t result = weir__read_held(s, to, bytes);
    weir__leave(s);
    return result;
}

ssize_t weir_read_some(weir_stream *s, void *to, size_t bytes)
{
    if (bytes > SSIZE_MAX)
        return -EINVAL;
    weir__enter(s);
    ssize_t result = weir__config(s)->can_read ? 0 : -EBADF;
    if (result == 0 && bytes > 0)
        result = read_step(s, to, bytes);
    weir__leave(s);
    return result;
}

/* Grows the read buffer for `bytes` unread bytes, to twice its size if memory allows: a program may ask for one more byte
 * at each call. */
static int grow_for_peek(weir_stream *s, size_t bytes)
{
    size_t twice = weir__config(s)->read_capacity * 2;
    int result = twice > bytes ? weir__grow_read(s, 0, twice) : -ENOMEM;
    return result == -ENOMEM ? weir__grow_read(s, 0, bytes) : result;
}

ssize_t weir__peek_held(weir_stream *s, size_t bytes)
{
    int result = weir__start_reading(s);
    if (result <= 0)
        return result;
    while (weir__unread(s) < bytes && !weir__state(s)->eof && !weir__state(s)->read_error) {
        uint64_t unread = weir__unread(s);
        if (bytes > weir__config(s)->read_capacity && (result = grow_for_peek(s, bytes)) < 0)
            return unread ? (ssize_t)unread : result;
        ssize_t got = weir__fill(s, bytes - unread);
        if (got < 0 && unread == 0)
            return got;
        if (got <= 0)
            break;
    }
    return (ssize_t)(weir__unread(s) < bytes ? weir__unread(s) : bytes);
}

ssize_t weir_peek(weir_stream *s, char **from, size_t bytes)
{
    if (bytes > SSIZE_MAX)
        return -EINVAL;
    weir__enter(s);
    ssize_t result = weir__peek_held(s, bytes);
    if (result >= 0) /* returns all unread bytes, as weir_reserve returns all the room */
        result = (ssize_t)weir__unread(s);
    *from = weir__next(s); /* NULL if the stream has no read buffer */
    weir__leave(s);
    return result;
}

ssize_t weir_skip(weir_stream *s, size_t bytes)
{
    if (bytes > SSIZE_MAX)
        return -EINVAL;
    weir__enter(s);
    ssize_t result = weir__read_held(s, NULL, bytes);
    weir__leave(s);
    return result;
}

/* Makes room in front of the unread bytes. A buffer of the caller must not change: a mapping replaces it. */
static int make_pushback_room(weir_stream *s)
{
    struct weir__config *config = weir__config(s);
    bool is_mapped = config->read_mapped != 0;
    uint64_t unread = weir__unread(s);
    if (unread >= WEIR_BUFFER_MAX) /* bounds the memory that repeated calls take */
        return -EMSGSIZE;
    if (is_mapped && weir__next(s) > config->read_buffer)
        return 0;
    size_t capacity = config->read_capacity > unread ? config->read_capacity : unread;
    return weir__grow_read(s, unread + 1, capacity ? capacity : 1);
}

int weir__ungetc_held(weir_stream *s, int c)
{
    struct weir__config *config = weir__config(s);
    struct weir__state *state = weir__state(s);
    if (!config->can_read)
        return -EBADF;
    if (c < 0)
        return -EINVAL;
    bool limits_changed = state->eof;
    if (config->can_write && config->seekable && !state->reading) {
        int result = weir__flush_held(s);
        if (result < 0)
            return result;
        state->reading = limits_changed = true;
    }
    bool same = s->read > weir__read_start(s) && s->read <= s->held_read_limit &&
                (unsigned char)weir__next(s)[-1] == (unsigned char)c;
    if (!same) {
        int result = make_pushback_room(s);
        if (result < 0)
            return result;
        weir__next(s)[-1] = (char)c;
        state->pushed_back = limits_changed = true;
    }
    WEIR_STORE(&s->read, s->read - 1);
    state->eof = false;
    if (limits_changed)
        weir__set_limits(s);
    return (unsigned char)c;
}

int weir_ungetc(weir_stream *s, int c)
{
    weir__enter(s);
    int result = weir__ungetc_held(s, c);
    weir__leave(s);
    return result;
}
