/* fill.c: the one read loop. Whatever a stream takes from its source it takes here. */
#include "private.h"

enum { FAR_SEEKS_ARE_RANDOM = 3 };

void weir__drop_read(weir_stream *s)
{
    s->held_read_limit = weir__read_start(s);
    WEIR_STORE(&s->read, s->held_read_limit);
    weir__hot(s)->pushed = false;
    weir__set_limits(s);
}

int weir__start_reading(weir_stream *s)
{
    struct weir__own *own = weir__own(s);
    struct weir__hot *hot = weir__hot(s);
    if (!own->can_read)
        return -EBADF;
    if (s->read < s->held_read_limit)
        return 1;
    if (hot->read_error)
        return hot->read_error;
    if (hot->eof)
        return 0;
    if (own->can_write && own->seekable && !hot->reading) {
        int result = weir__flush_held(s);
        if (result < 0)
            return result;
        hot->reading = true;
        weir__set_limits(s);
    }
    return 1;
}

/* Before the program waits for input, who reads its output must see the question. */
static void flush_tied(weir_stream *s)
{
    weir_stream *tied = weir__own(s)->tied;
    if (tied && tied != s)
        weir_flush(tied);
}

static void advise(weir_stream *s)
{
    struct weir__own *own = weir__own(s);
    struct weir__hot *hot = weir__hot(s);
    if (!own->regular || hot->advised)
        return;
    if (own->access == WEIR_ACCESS_AUTO && hot->stats.reads < 1 && hot->far_seeks < FAR_SEEKS_ARE_RANDOM)
        return; /* most files are read with one call: no second one for them */
    bool random = own->access == WEIR_ACCESS_RANDOM || hot->far_seeks >= FAR_SEEKS_ARE_RANDOM;
    weir__kernel.fadvise(own->fd, 0, 0, random ? POSIX_FADV_RANDOM : POSIX_FADV_SEQUENTIAL);
    hot->advised = true;
}

/* Waiting is the kernel's; a signal that was handled is no reason to stop. */
static ssize_t read_loop(weir_stream *s, char *to, size_t bytes)
{
    struct weir__hot *hot = weir__hot(s);
    flush_tied(s);
    advise(s);
    ssize_t got;
    do {
        hot->stats.reads++;
        atomic_store_explicit(&hot->waiting, true, memory_order_release);
        got = weir__own(s)->sink->read(s, to, bytes);
        atomic_store_explicit(&hot->waiting, false, memory_order_relaxed);
        hot->stats.interrupted += got == -EINTR;
    } while (got == -EINTR);
    if (got > 0) {
        hot->stats.read_bytes += (uint64_t)got;
        if (hot->pos >= 0)
            hot->pos += got;
    } else if (got == 0) {
        hot->eof = true;
    } else if (got == -EAGAIN || got == -EWOULDBLOCK) {
        hot->stats.again++;
        got = -EAGAIN;
    } else {
        hot->read_error = (int)got;
    }
    return got;
}

/* A buffer was read to its end, and the next is wanted: sequential, or so again. */
static void read_through(weir_stream *s)
{
    struct weir__hot *hot = weir__hot(s);
    if (hot->far_seeks >= FAR_SEEKS_ARE_RANDOM)
        hot->advised = false;
    hot->far_seeks = 0;
}

/* Space behind the unread bytes: they move to the start when the end is reached. */
static int make_space(weir_stream *s)
{
    struct weir__own *own = weir__own(s);
    uint64_t start = weir__read_start(s), end = start + own->read_capacity;
    uint64_t unread = weir__unread(s);
    if (unread == 0) {
        if (s->held_read_limit > start)
            read_through(s);
        weir__drop_read(s);
        return 0;
    }
    if (s->held_read_limit < end)
        return 0;
    if (s->read > start && unread <= own->read_capacity / 2) {
        /* Where blocks are read, the next one begins where a block may lie. */
        uint64_t to = own->direct && unread <= own->read_start ? start - unread : start;
        memmove((char *)(uintptr_t)to, weir__next(s), unread);
        WEIR_STORE(&s->read, to);
        s->held_read_limit = to + unread;
        weir__set_limits(s);
        return 0;
    }
    return weir__grow_read(s, 0, unread * 2 > own->read_capacity ? unread * 2 : own->read_capacity);
}

/* How much one read may take: on a descriptor that others will read, no more than was asked for, unless
 * it can be given back. A program that seeks about wants blocks, not the whole buffer. */
static size_t request(weir_stream *s, size_t space, size_t want)
{
    struct weir__own *own = weir__own(s);
    size_t bytes = space;
    if (own->share && !own->seekable)
        bytes = want;
    else if (own->regular && (own->access == WEIR_ACCESS_RANDOM || weir__hot(s)->far_seeks >= FAR_SEEKS_ARE_RANDOM))
        bytes = want > 4096 ? want : 4096;
    return bytes < space ? bytes : space;
}

ssize_t weir__fill(weir_stream *s, size_t want)
{
    struct weir__own *own = weir__own(s);
    if (!own->sink->read) {
        weir__hot(s)->eof = true;
        return 0;
    }
    int result = make_space(s);
    if (result < 0)
        return result;
    size_t space = weir__read_start(s) + own->read_capacity - s->held_read_limit;
    ssize_t got = read_loop(s, (char *)(uintptr_t)s->held_read_limit, request(s, space, want));
    if (got > 0) {
        size_t skew = own->direct ? weir__direct_skew(own) : 0;
        WEIR_STORE(&s->read, s->read + skew);
        s->held_read_limit += skew + (uint64_t)got;
        weir__set_limits(s);
    }
    return got;
}

ssize_t weir__read_direct(weir_stream *s, void *to, size_t bytes)
{
    weir__drop_read(s);
    return read_loop(s, to, bytes);
}

int weir__give_back(weir_stream *s)
{
    struct weir__own *own = weir__own(s);
    struct weir__hot *hot = weir__hot(s);
    int64_t unread = (int64_t)weir__unread(s);
    if (!own->seekable || unread == 0)
        return 0;
    if (!own->sink->seek)
        return -ESPIPE;
    hot->stats.seeks++;
    int64_t pos = own->sink->seek(s, -unread, SEEK_CUR);
    if (pos == -EINVAL) /* more was pushed back than the file has before */
        pos = own->sink->seek(s, 0, SEEK_SET);
    hot->pos = pos < 0 ? -1 : pos;
    if (pos < 0)
        return (int)pos;
    hot->eof = false; /* there is something to be read again */
    return 0;
}
