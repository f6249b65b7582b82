/* sink_uring.c: the program fills one half of the buffer while io_uring writes the other (WEIR_URING).
 *
 * TWO SEGMENTS. own->buffer is one, the spare the other. A full buffer is given to the ring whole, and the
 * stream goes on with the spare (weir__drain_async, weir__uring_swap): for the published offsets these
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
    bool unavailable;  /* there is no io_uring, or not for this file */
    bool async;        /* weir__drain_async asks: the write may stay in flight */
    bool in_flight;    /* a write of `from` and `left` is in flight */
    bool swap_pending; /* it is that of own->buffer: weir__uring_swap has not come yet */
    int error;    /* of the last one, not told to anybody yet */
    char *from;   /* taken from the buffer, and not yet written, as far as known */
    size_t remaining;
    int64_t offset; /* where it goes; -1: where the descriptor is */
    struct segment spare;
};

/* ---- coming and going ---- */

int weir__uring_init(weir_stream *s, const struct weir_options *options)
{
    struct weir__config *config = weir__config(s);
    struct weir__uring *u = calloc(1, sizeof *u);
    if (!u)
        return -ENOMEM;
    u->ring.fd = -1;
    config->uring = u;
    if (!options->buffer)
        return 0;
    config->capacity /= 2; /* of the caller's memory each gets a half */
    u->spare = (struct segment){config->buffer + config->capacity, 0, config->capacity};
    return config->capacity ? 0 : -EINVAL;
}

static void advance_range(struct weir__uring *u, size_t bytes)
{
    bytes = bytes < u->remaining ? bytes : u->remaining;
    u->from += bytes;
    u->remaining -= bytes;
    u->offset += u->offset < 0 ? 0 : (int64_t)bytes;
}

/* What will never be written leaves no gap, if nobody has gone on from behind it. */
static void release_range(const weir_stream *s)
{
    const struct weir__uring *u = weir__config(s)->uring;
    int fd = weir__config(s)->fd;
    if (u->remaining && u->offset >= 0 &&
        weir__kernel.lseek(fd, 0, SEEK_CUR) == u->offset + (int64_t)u->remaining)
        weir__kernel.lseek(fd, u->offset, SEEK_SET);
}

void weir__uring_free(weir_stream *s)
{
    struct weir__config *config = weir__config(s);
    struct weir__uring *u = config->uring;
    weir__uring_remaining(s, true); /* the kernel reads from the memory */
    release_range(s);
    weir__ring_free(&u->ring);
    if (u->spare.mapped)
        weir__kernel.munmap(u->spare.memory, u->spare.mapped);
    free(u);
    config->uring = NULL;
}

/* The number is still the ring's: nobody has closed anything yet. */
void weir__uring_close_in_child(weir_stream *s)
{
    struct weir__uring *u = weir__config(s)->uring;
    if (u->ring.fd >= 0)
        weir__kernel.close(u->ring.fd);
    u->ring.fd = -1;
}

/* Its memory is not mapped here, and after clone(2) nobody knows whether the number is still its own. */
void weir__uring_reinit(weir_stream *s)
{
    const struct weir__config *config = weir__config(s);
    struct segment spare = config->uring->spare;
    if (spare.memory == config->buffer) /* the fork was in the middle of a swap */
        spare = (struct segment){0};
    *config->uring = (struct weir__uring){.ring.fd = -1, .spare = spare};
}

/* ---- what is in flight ---- */

static int submit(weir_stream *s)
{
    const struct weir__config *config = weir__config(s);
    struct weir__uring *u = config->uring;
    struct weir__ring_write write = {config->fd, u->from, u->remaining, u->offset,
                                     config->regular || config->block_device};
    int result = weir__ring_submit(&u->ring, &write);
    u->in_flight = result == 0;
    u->unavailable = result == -ENOSYS || result == -EPERM || result == -EBADF || result == -EOPNOTSUPP;
    return result;
}

/* Errors that write(2) is asked about: it is the right one to say them, or they are none of the file's. */
static bool is_transient(int error)
{
    return error == 0 || error == -EINTR || error == -EAGAIN || error == -ECANCELED;
}
static bool is_retried_by_write(int error)
{
    return error == -EPIPE || error == -EFBIG || error == -EINVAL || error == -EOPNOTSUPP;
}

/* What became of the write in flight; u->error says whether it failed. */
static void reap(weir_stream *s, bool wait)
{
    struct weir__uring *u = weir__config(s)->uring;
    int result;
    if (!u->in_flight || !weir__ring_reap(&u->ring, wait, &result))
        return;
    u->in_flight = false;
    if (result > 0) {
        advance_range(u, (size_t)result);
        weir__state(s)->stats.short_writes += u->remaining > 0;
    } else if (!is_transient(result)) {
        u->error = result;
        u->unavailable = u->unavailable || result == -EINVAL || result == -EOPNOTSUPP;
    }
}

static ssize_t write_rest(weir_stream *s)
{
    const struct weir__config *config = weir__config(s);
    const struct weir__uring *u = config->uring;
    weir__state(s)->stats.writes++;
    if (u->offset >= 0)
        return WEIR_CALL(weir__kernel.pwrite(config->fd, u->from, u->remaining, u->offset));
    return WEIR_CALL(weir__kernel.write(config->fd, u->from, u->remaining));
}

static int clear_error(struct weir__uring *u)
{
    int error = u->error;
    u->error = 0;
    return error;
}

/* Waits for what is in flight and writes what is left of it. 0: nothing is. */
static int complete_write(weir_stream *s)
{
    struct weir__uring *u = weir__config(s)->uring;
    while (u->remaining) {
        reap(s, true);
        int error = clear_error(u);
        if (error && !is_retried_by_write(error))
            return error;
        if (!u->remaining)
            break;
        ssize_t swap_pending = write_rest(s);
        if (swap_pending > 0)
            advance_range(u, (size_t)swap_pending);
        else if (swap_pending == -EINTR)
            weir__state(s)->stats.interrupted++;
        else
            return swap_pending ? (int)swap_pending : -EIO;
    }
    return 0;
}

uint64_t weir__uring_remaining(weir_stream *s, bool wait)
{
    reap(s, wait);
    return weir__config(s)->uring->remaining;
}

int weir__uring_resume(weir_stream *s)
{
    struct weir__uring *u = weir__config(s)->uring;
    reap(s, false);
    if (u->in_flight || !u->remaining)
        return u->in_flight;
    int error = clear_error(u);
    if (error)
        return weir__fail(s, error);
    submit(s); /* never waits, as write(2) might; if it cannot, the rest is for the program's next call */
    return 1;
}

/* ---- giving a buffer away ---- */

static bool ensure_ring(struct weir__uring *u)
{
    if (u->ring.fd < 0 && !u->unavailable)
        u->unavailable = weir__ring_init(&u->ring) < 0;
    return !u->unavailable;
}

/* As large as the buffer, which may have changed. Nothing is in flight. */
static bool ensure_spare(const struct weir__config *config)
{
    struct segment *spare = &config->uring->spare;
    if (spare->memory && spare->capacity == config->capacity)
        return true;
    size_t bytes = (config->capacity + weir__page - 1) & ~(weir__page - 1);
    void *got = weir__kernel.mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (got == MAP_FAILED)
        return false;
    if (spare->mapped)
        weir__kernel.munmap(spare->memory, spare->mapped);
    *spare = (struct segment){got, bytes, config->capacity};
    return true;
}

/* Of the file, where it has one: from here on others who share the position write behind it. */
static bool reserve_range(const weir_stream *s, size_t bytes)
{
    const struct weir__config *config = weir__config(s);
    config->uring->offset = -1;
    if (!config->seekable || config->append)
        return true;
    int64_t end = WEIR_CALL(weir__kernel.lseek(config->fd, (off_t)bytes, SEEK_CUR));
    config->uring->offset = end - (int64_t)bytes;
    return end >= 0;
}

static bool submit_buffer(weir_stream *s, const struct iovec *all)
{
    const struct weir__config *config = weir__config(s);
    struct weir__uring *u = config->uring;
    if (!ensure_ring(u) || !ensure_spare(config) || !reserve_range(s, all->iov_len))
        return false;
    u->from = all->iov_base;
    u->remaining = all->iov_len;
    if (submit(s) < 0) {
        release_range(s);
        u->remaining = 0;
        return false;
    }
    u->swap_pending = true;
    return true;
}

static bool is_whole_buffer(const weir_stream *s, const struct iovec *iov, int count)
{
    return count == 1 && (char *)iov->iov_base + iov->iov_len == weir__config(s)->buffer + weir__written(s);
}

static ssize_t uring_write(weir_stream *s, const struct iovec *iov, int count)
{
    int result = complete_write(s);
    if (result < 0)
        return result;
    const struct weir__config *config = weir__config(s);
    bool async_allowed = config->uring->async && config->durability < WEIR_KERNEL;
    if (async_allowed && is_whole_buffer(s, iov, count) && submit_buffer(s, iov))
        return (ssize_t)iov->iov_len;
    return weir__fd_write(s, iov, count);
}

void weir__uring_allow_async(struct weir__uring *uring, bool async_allowed) { uring->async = async_allowed; }

void weir__uring_swap(weir_stream *s)
{
    struct weir__config *config = weir__config(s);
    struct weir__uring *u = config->uring;
    if (!u->swap_pending)
        return;
    u->swap_pending = false;
    struct segment submitted = {config->buffer, config->mapped, config->capacity};
    config->buffer = u->spare.memory;
    config->mapped = u->spare.mapped;
    config->capacity = u->spare.capacity;
    u->spare = submitted;
    weir__buffers_set_pointers(s);
    weir__set_limits(s);
}

/* ---- the rest of the sink ---- */

static int uring_finish(weir_stream *s)
{
    int result = complete_write(s);
    return result < 0 ? weir__fail(s, result) : 0;
}

/* Asking where the descriptor is needs no waiting: the place of what is in flight is taken. */
static int64_t uring_seek(weir_stream *s, int64_t offset, int whence)
{
    int result = offset == 0 && whence == SEEK_CUR && !weir__config(s)->append ? 0 : uring_finish(s);
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
