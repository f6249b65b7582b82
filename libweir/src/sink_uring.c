/* sink_uring.c: the program fills one half of the buffer while io_uring writes the other (WEIR_URING).
 *
 * TWO SEGMENTS. own->buffer is one, the spare the other. A full buffer is given to the ring whole, and the
 * stream goes on with the spare (weir__drain_ahead, weir__uring_swap): for the published offsets these
 * bytes are drained, they belong to the kernel from then on. One write is in flight at a time; before
 * anything else goes to the descriptor, or moves it, it has come to its end (settle). So the order is that
 * of the program, on files, O_APPEND, pipes and sockets alike. Nothing else is different from a stream over
 * a descriptor: a flush, line and record writes on pipes, the modes and durabilities that promise something
 * for each record, and blocks of the caller's larger than the buffer are plain write(2), without a copy.
 *
 * WHAT COULD NOT BE WRITTEN stays where it is, before all that waits in the buffer: it counts as pending,
 * and is tried again by write(2) after weir_clear. A short count is no error: the rest is written. EINTR,
 * EAGAIN and a cancelled write (its thread has ended) are tried again by write(2) at once, and so are EPIPE
 * and EFBIG, because only write(2) sends their signals to the program.
 *
 * THE POSITION. The place in a file is taken by lseek(2) in one step with finding it, before the write, and
 * the write goes to that place: io_uring itself would read the position, write, and set it, and who writes
 * with a copy of the descriptor meanwhile would be overwritten.
 *
 * WHO THE RING BELONGS TO. It is made with the first full buffer. A forked child has none of it: its first
 * full buffer makes its own, and what is in flight is the parent's. Where the kernel has no io_uring, or
 * not for this process, all writes are plain ones; whether there is a ring shows as anon_inode:[io_uring] in
 * /proc/PID/fd. Files are written by a thread of the kernel's; pipes and sockets as their readers make
 * room, which runs in the program's own threads and can end a wait in epoll_wait(2) and a few other calls
 * with EINTR, as a signal would. */
#include "private.h"

#include <sys/mman.h>
#include <unistd.h>

#include "uring_ring.h"

struct segment {
    char *memory; /* NULL: not there yet */
    size_t mapped; /* 0: the caller's */
    size_t capacity;
};

struct weir__uring {
    struct weir__ring ring;
    bool absent;  /* there is no io_uring, or not for this file */
    bool ahead;   /* weir__drain_ahead asks: the write may stay in flight */
    bool flying;  /* a write of `from` and `left` is in flight */
    bool taken;   /* it is that of own->buffer: weir__uring_swap has not come yet */
    int error;    /* of the last one, not told to anybody yet */
    char *from;   /* taken from the buffer, and not yet written, as far as known */
    size_t left;
    int64_t offset; /* where it goes; -1: where the descriptor is */
    struct segment spare;
};

/* ---- coming and going ---- */

int weir__uring_make(weir_stream *s, const struct weir_options *options)
{
    struct weir__own *own = weir__own(s);
    struct weir__uring *u = calloc(1, sizeof *u);
    if (!u)
        return -ENOMEM;
    u->ring.fd = -1;
    own->uring = u;
    if (!options->buffer)
        return 0;
    own->capacity /= 2; /* of the caller's memory each gets a half */
    u->spare = (struct segment){own->buffer + own->capacity, 0, own->capacity};
    return own->capacity ? 0 : -EINVAL;
}

static void advance(struct weir__uring *u, size_t bytes)
{
    bytes = bytes < u->left ? bytes : u->left;
    u->from += bytes;
    u->left -= bytes;
    u->offset += u->offset < 0 ? 0 : (int64_t)bytes;
}

/* What will never be written leaves no gap, if nobody has gone on from behind it. */
static void give_place_back(const weir_stream *s)
{
    const struct weir__uring *u = weir__own(s)->uring;
    int fd = weir__own(s)->fd;
    if (u->left && u->offset >= 0 && weir__kernel.lseek(fd, 0, SEEK_CUR) == u->offset + (int64_t)u->left)
        weir__kernel.lseek(fd, u->offset, SEEK_SET);
}

void weir__uring_free(weir_stream *s)
{
    struct weir__own *own = weir__own(s);
    struct weir__uring *u = own->uring;
    weir__uring_left(s, true); /* the kernel reads from the memory */
    give_place_back(s);
    weir__ring_end(&u->ring);
    if (u->spare.mapped)
        weir__kernel.munmap(u->spare.memory, u->spare.mapped);
    free(u);
    own->uring = NULL;
}

/* The number is still the ring's: nobody has closed anything yet. */
void weir__uring_forget(weir_stream *s)
{
    struct weir__uring *u = weir__own(s)->uring;
    if (u->ring.fd >= 0)
        weir__kernel.close(u->ring.fd);
    u->ring.fd = -1;
}

/* Its memory is not mapped here, and after clone(2) nobody knows whether the number is still its own. */
void weir__uring_renew(weir_stream *s)
{
    const struct weir__own *own = weir__own(s);
    struct segment spare = own->uring->spare;
    if (spare.memory == own->buffer) /* the fork was in the middle of a swap */
        spare = (struct segment){0};
    *own->uring = (struct weir__uring){.ring.fd = -1, .spare = spare};
}

/* ---- what is in flight ---- */

static int start(weir_stream *s)
{
    const struct weir__own *own = weir__own(s);
    struct weir__uring *u = own->uring;
    struct weir__ring_write write = {own->fd, u->from, u->left, u->offset, own->regular || own->block};
    int result = weir__ring_start(&u->ring, &write);
    u->flying = result == 0;
    u->absent = result == -ENOSYS || result == -EPERM || result == -EBADF || result == -EOPNOTSUPP;
    return result;
}

/* Errors that write(2) is asked about: it is the right one to say them, or they are none of the file's. */
static bool is_passing(int error)
{
    return error == 0 || error == -EINTR || error == -EAGAIN || error == -ECANCELED;
}
static bool is_for_write(int error)
{
    return error == -EPIPE || error == -EFBIG || error == -EINVAL || error == -EOPNOTSUPP;
}

/* What became of the write in flight; u->error says whether it failed. */
static void land(weir_stream *s, bool wait)
{
    struct weir__uring *u = weir__own(s)->uring;
    int result;
    if (!u->flying || !weir__ring_ended(&u->ring, wait, &result))
        return;
    u->flying = false;
    if (result > 0) {
        advance(u, (size_t)result);
        weir__hot(s)->stats.short_writes += u->left > 0;
    } else if (!is_passing(result)) {
        u->error = result;
        u->absent = u->absent || result == -EINVAL || result == -EOPNOTSUPP;
    }
}

static ssize_t write_rest(weir_stream *s)
{
    const struct weir__own *own = weir__own(s);
    const struct weir__uring *u = own->uring;
    weir__hot(s)->stats.writes++;
    if (u->offset >= 0)
        return WEIR_CALL(weir__kernel.pwrite(own->fd, u->from, u->left, u->offset));
    return WEIR_CALL(weir__kernel.write(own->fd, u->from, u->left));
}

static int take_error(struct weir__uring *u)
{
    int error = u->error;
    u->error = 0;
    return error;
}

/* Waits for what is in flight and writes what is left of it. 0: nothing is. */
static int settle(weir_stream *s)
{
    struct weir__uring *u = weir__own(s)->uring;
    while (u->left) {
        land(s, true);
        int error = take_error(u);
        if (error && !is_for_write(error))
            return error;
        if (!u->left)
            break;
        ssize_t taken = write_rest(s);
        if (taken > 0)
            advance(u, (size_t)taken);
        else if (taken == -EINTR)
            weir__hot(s)->stats.interrupted++;
        else
            return taken ? (int)taken : -EIO;
    }
    return 0;
}

uint64_t weir__uring_left(weir_stream *s, bool wait)
{
    land(s, wait);
    return weir__own(s)->uring->left;
}

int weir__uring_resume(weir_stream *s)
{
    struct weir__uring *u = weir__own(s)->uring;
    land(s, false);
    if (u->flying || !u->left)
        return u->flying;
    int error = take_error(u);
    if (error)
        return weir__fail(s, error);
    start(s); /* never waits, as write(2) might; if it cannot, the rest is for the program's next call */
    return 1;
}

/* ---- giving a buffer away ---- */

static bool have_ring(struct weir__uring *u)
{
    if (u->ring.fd < 0 && !u->absent)
        u->absent = weir__ring_make(&u->ring) < 0;
    return !u->absent;
}

/* As large as the buffer, which may have changed. Nothing is in flight. */
static bool have_spare(const struct weir__own *own)
{
    struct segment *spare = &own->uring->spare;
    if (spare->memory && spare->capacity == own->capacity)
        return true;
    size_t bytes = (own->capacity + weir__page - 1) & ~(weir__page - 1);
    void *got = weir__kernel.mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (got == MAP_FAILED)
        return false;
    if (spare->mapped)
        weir__kernel.munmap(spare->memory, spare->mapped);
    *spare = (struct segment){got, bytes, own->capacity};
    return true;
}

/* Of the file, where it has one: from here on others who share the position write behind it. */
static bool take_place(const weir_stream *s, size_t bytes)
{
    const struct weir__own *own = weir__own(s);
    own->uring->offset = -1;
    if (!own->seekable || own->append)
        return true;
    int64_t end = WEIR_CALL(weir__kernel.lseek(own->fd, (off_t)bytes, SEEK_CUR));
    own->uring->offset = end - (int64_t)bytes;
    return end >= 0;
}

static bool give_away(weir_stream *s, const struct iovec *all)
{
    const struct weir__own *own = weir__own(s);
    struct weir__uring *u = own->uring;
    if (!have_ring(u) || !have_spare(own) || !take_place(s, all->iov_len))
        return false;
    u->from = all->iov_base;
    u->left = all->iov_len;
    if (start(s) < 0) {
        give_place_back(s);
        u->left = 0;
        return false;
    }
    u->taken = true;
    return true;
}

static bool is_whole_buffer(const weir_stream *s, const struct iovec *iov, int count)
{
    return count == 1 && (char *)iov->iov_base + iov->iov_len == weir__own(s)->buffer + weir__written(s);
}

static ssize_t uring_write(weir_stream *s, const struct iovec *iov, int count)
{
    int result = settle(s);
    if (result < 0)
        return result;
    const struct weir__own *own = weir__own(s);
    bool may = own->uring->ahead && own->durability < WEIR_KERNEL;
    if (may && is_whole_buffer(s, iov, count) && give_away(s, iov))
        return (ssize_t)iov->iov_len;
    return weir__fd_write(s, iov, count);
}

void weir__uring_ahead(struct weir__uring *uring, bool may) { uring->ahead = may; }

void weir__uring_swap(weir_stream *s)
{
    struct weir__own *own = weir__own(s);
    struct weir__uring *u = own->uring;
    if (!u->taken)
        return;
    u->taken = false;
    struct segment given = {own->buffer, own->mapped, own->capacity};
    own->buffer = u->spare.memory;
    own->mapped = u->spare.mapped;
    own->capacity = u->spare.capacity;
    u->spare = given;
    weir__buffers_point(s);
    weir__set_limits(s);
}

/* ---- the rest of the sink ---- */

static int uring_finish(weir_stream *s)
{
    int result = settle(s);
    return result < 0 ? weir__fail(s, result) : 0;
}

/* Asking where the descriptor is needs no waiting: the place of what is in flight is taken. */
static int64_t uring_seek(weir_stream *s, int64_t offset, int whence)
{
    int result = offset == 0 && whence == SEEK_CUR && !weir__own(s)->append ? 0 : uring_finish(s);
    return result < 0 ? result : weir__fd_seek(s, offset, whence);
}

const struct weir__sink weir__sink_uring = {
    .write = uring_write,
    .read = weir__fd_read,
    .seek = uring_seek,
    .sync = weir__fd_sync,
    .close = weir__fd_close,
    .finish = uring_finish,
};
