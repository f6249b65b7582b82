/* sink_uring.c: io_uring writes one half of the buffer while the program fills the other (WEIR_URING).
 *
 * TWO SEGMENTS. config->buffer is one segment, u->spare the other. A full buffer is submitted whole, and
 * the stream continues with the spare one (weir__drain_async, weir__uring_swap). For the published offsets
 * the submitted bytes are drained; the memory belongs to the kernel until the write completes. Only one
 * write is in flight at a time. Before any other operation on the descriptor it is completed
 * (complete_write), so the order of the bytes is the program's on files, O_APPEND, pipes and sockets. All
 * other writes are plain write(2) calls: flushes, line and record writes to pipes, modes and durabilities
 * that promise something for each record, and blocks of the caller's that are larger than the buffer
 * (without a copy).
 *
 * ERRORS. Bytes that could not be written keep their memory and precede all bytes in the buffer. They count
 * as pending, and after weir_clear write(2) tries them again. After a short count the rest is written.
 * EINTR, EAGAIN and a cancelled write (its thread has exited) are tried again by write(2) at once. So are
 * EPIPE and EFBIG, because only write(2) raises their signals in the program.
 *
 * POSITION. lseek(2) reserves the range of a file in one step with finding its position, and the write gets
 * this explicit offset. io_uring with offset -1 would load the position, write, and store it; a concurrent
 * writer with the same position would be overwritten.
 *
 * OWNERSHIP. The ring is created with the first full buffer. A forked child has no ring and creates its
 * own; the write in flight is the parent's. If io_uring is not available, all writes are plain ones. A ring
 * shows as anon_inode:[io_uring] in /proc/PID/fd. The kernel writes files from a worker thread. Writes to
 * pipes and sockets continue as the reader makes room, in task work of the program's threads, which can
 * interrupt epoll_wait(2) and a few other calls with EINTR, as a signal does. */
#include "private.h"

#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include "uring_ring.h"

struct segment {
    char *memory;  /* NULL: not allocated */
    size_t mapped; /* 0: the caller's memory */
    size_t capacity;
};

struct weir__uring {
    char *from;       /* start of the bytes taken from the buffer and not written yet; weir reads it from outside */
    size_t remaining; /* weir reads it from outside */
    struct weir__ring ring;
    bool unavailable;  /* io_uring is not available, or not for this file */
    bool async;        /* set by weir__drain_async: the write may stay in flight */
    bool in_flight;    /* a write of `from` and `remaining` is in flight */
    bool swap_pending; /* it is config->buffer; weir__uring_swap has not run yet */
    int error;         /* of the last write, not reported yet */
    int64_t offset; /* of `from` in the file; -1: at the descriptor's position */
    struct segment spare;
};
_Static_assert(offsetof(struct weir__uring, from) == 0 && offsetof(struct weir__uring, remaining) == sizeof(char *),
               "see offsets.c");

/* ---- setup and teardown ---- */

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
    config->capacity /= 2; /* each segment gets half of the caller's memory */
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

/* Moves the position back over bytes that will never be written, unless another writer has continued behind
 * them. */
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
    weir__uring_remaining(s, true); /* the kernel still reads the memory */
    release_range(s);
    weir__ring_free(&u->ring);
    if (u->spare.mapped)
        weir__kernel.munmap(u->spare.memory, u->spare.mapped);
    free(u);
    config->uring = NULL;
}

/* Runs in the child handler of fork(3): no code of the child can have closed the number yet. */
void weir__uring_close_in_child(weir_stream *s)
{
    struct weir__uring *u = weir__config(s)->uring;
    if (u->ring.fd >= 0)
        weir__kernel.close(u->ring.fd);
    u->ring.fd = -1;
}

/* Does not close the descriptor: after clone(2) the child may have closed it and reused the number. */
void weir__uring_reinit(weir_stream *s)
{
    const struct weir__config *config = weir__config(s);
    struct segment spare = config->uring->spare;
    if (spare.memory == config->buffer) /* the fork happened during a swap */
        spare = (struct segment){0};
    *config->uring = (struct weir__uring){.ring.fd = -1, .spare = spare};
}

/* ---- the write in flight ---- */

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

/* Returns whether the write did not fail: write(2) simply continues it. */
static bool is_transient(int error)
{
    return error == 0 || error == -EINTR || error == -EAGAIN || error == -ECANCELED;
}

/* Returns whether write(2) must report the error: it raises SIGPIPE and SIGXFSZ. The other two mean that
 * io_uring does not support this file. */
static bool is_retried_by_write(int error)
{
    return error == -EPIPE || error == -EFBIG || error == -EINVAL || error == -EOPNOTSUPP;
}

/* Takes the result of the write in flight, if it has completed. Stores a failure in u->error. */
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

/* Waits for the write in flight and writes the rest. Returns 0 if no bytes remain. */
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
        ssize_t written = write_rest(s);
        if (written > 0)
            advance_range(u, (size_t)written);
        else if (written == -EINTR)
            weir__state(s)->stats.interrupted++;
        else
            return written ? (int)written : -EIO;
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
    submit(s); /* unlike write(2) this never blocks; if it fails, the program's next call writes the rest */
    return 1;
}

/* ---- submitting a buffer ---- */

static bool ensure_ring(struct weir__uring *u)
{
    if (u->ring.fd < 0 && !u->unavailable)
        u->unavailable = weir__ring_init(&u->ring) < 0;
    return !u->unavailable;
}

/* Allocates the spare segment with the buffer's current capacity. Requires that no write is in flight. */
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

/* Reserves the next `bytes` bytes of a seekable file: other users of the position then write behind them. */
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

static ssize_t uring_write_now(weir_stream *s, const struct iovec *iov, int count)
{
    int result = complete_write(s); /* the timer has seen that no bytes remain */
    return result < 0 ? result : weir__fd_write_now(s, iov, count);
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

/* ---- the other operations ---- */

static int uring_finish(weir_stream *s)
{
    int cancel = weir__cancel_off();
    int result = complete_write(s);
    weir__cancel_restore(cancel);
    return result < 0 ? weir__fail(s, result) : 0;
}

/* Querying the position needs no wait: the range of the write in flight is already reserved. */
static int64_t uring_seek(weir_stream *s, int64_t offset, int whence)
{
    int result = offset == 0 && whence == SEEK_CUR && !weir__config(s)->append ? 0 : uring_finish(s);
    return result < 0 ? result : weir__fd_seek(s, offset, whence);
}

const struct weir__sink weir__sink_uring = {
    .write = uring_write,
    .write_now = uring_write_now,
    .read = weir__fd_read,
    .seek = uring_seek,
    .sync = weir__fd_sync,
    .close = weir__fd_close,
    .finish = uring_finish,
};
