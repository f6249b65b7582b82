/* file_lock.c: WEIR_LOCK_FILE. Each write locks the whole file, so that several writers append in turns.
 *
 * THE DESCRIPTOR. F_OFD_SETLK locks belong to the open file description. A forked child and a descriptor of
 * dup(2) share theirs: they would not exclude each other, and the first unlock would end the lock of both.
 * Therefore a stream opens its file a second time, through /proc, and locks that descriptor; a forked child
 * opens its own. Without /proc, or without permission to open the file again, the stream locks the descriptor
 * that it writes to.
 *
 * A FAILED WRITE may have written a part of a line or record, and the next writer would append to that part.
 * Therefore the part is removed before the file is unlocked. */
#include "private.h"

#include <unistd.h>

/* Returns whether lock_fd still refers to the file. The program may have closed a range of descriptors, and another file may
 * have the number now. */
static bool is_lock_fd_valid(const struct weir__config *config)
{
    struct stat status;
    return config->lock_fd >= 0 && weir__kernel.fstat(config->lock_fd, &status) == 0 && status.st_dev == config->lock_dev &&
           status.st_ino == config->lock_ino;
}

void weir__file_lock_close(weir_stream *s)
{
    struct weir__config *config = weir__config(s);
    if (config->lock_pid && is_lock_fd_valid(config))
        weir__kernel.close(config->lock_fd);
    config->lock_pid = 0;
}

/* A second descriptor for a FIFO would keep its reader from seeing the end. */
static int open_again(struct weir__config *config)
{
    struct stat status;
    int fd = config->regular || config->block_device ? weir__fd_reopen(config->fd, 0) : -1;
    if (fd >= 0 && weir__kernel.fstat(fd, &status) == 0) {
        config->lock_dev = status.st_dev;
        config->lock_ino = status.st_ino;
    }
    return fd;
}

static int lock_descriptor(weir_stream *s)
{
    struct weir__config *config = weir__config(s);
    int pid = (int)getpid();
    if (config->lock_pid != pid) { /* the first write of this process */
        weir__file_lock_close(s);
        config->lock_fd = open_again(config);
        config->lock_pid = pid;
    }
    return config->lock_fd >= 0 ? config->lock_fd : config->fd;
}

static int set_lock(weir_stream *s, short type, bool wait)
{
    struct flock whole = {.l_type = type, .l_whence = SEEK_SET};
    int fd = lock_descriptor(s);
    int64_t result;
    do
        result = WEIR_CALL(weir__kernel.fcntl(fd, wait ? F_OFD_SETLKW : F_OFD_SETLK, &whole));
    while (result == -EINTR);
    return result == -EACCES && !wait ? -EAGAIN : (int)result;
}

int weir__file_lock(weir_stream *s, bool wait)
{
    struct weir__config *config = weir__config(s);
    int result = set_lock(s, F_WRLCK, wait);
    if (result < 0 || !config->seekable || config->append)
        return result;
    int64_t end = WEIR_CALL(weir__kernel.lseek(config->fd, 0, SEEK_END));
    if (end < 0)
        weir__file_unlock(s);
    return end < 0 ? (int)end : 0;
}

void weir__file_unlock(weir_stream *s) { set_lock(s, F_UNLCK, true); }

/* Returns how many of the `bytes` at `from` are behind the last separator. */
static uint64_t incomplete_bytes(const struct weir__config *config, const char *from, uint64_t bytes)
{
    const char *end = config->separator < 0 || !bytes ? NULL : memrchr(from, config->separator, bytes);
    return end ? bytes - (uint64_t)(end + 1 - from) : bytes;
}

/* The same for the caller's bytes from offset `begin` up to offset `end`. */
static uint64_t incomplete_of_more(const struct weir__config *config, const struct iovec *more, size_t begin,
                                   size_t end)
{
    uint64_t incomplete = 0;
    for (size_t at = 0; at < end; at += more->iov_len, more++) {
        size_t from = begin > at ? begin - at : 0, upto = more->iov_len < end - at ? more->iov_len : end - at;
        if (from >= upto)
            continue;
        uint64_t last = incomplete_bytes(config, (const char *)more->iov_base + from, upto - from);
        incomplete = last < upto - from ? last : incomplete + last;
    }
    return incomplete;
}

/* Returns the end of the file if our last write is there, else -1: another program has appended without a lock. */
static int64_t end_of_our_write(const struct weir__config *config)
{
    struct stat status;
    int64_t end = WEIR_CALL(weir__kernel.lseek(config->fd, 0, SEEK_CUR));
    return end >= 0 && weir__kernel.fstat(config->fd, &status) == 0 && status.st_size == end ? end : -1;
}

void weir__file_take_back(weir_stream *s, uint64_t drained, const struct iovec *more, size_t done,
                          size_t *more_done)
{
    struct weir__config *config = weir__config(s);
    struct weir__state *state = weir__state(s);
    uint64_t of_more = *more_done - done, of_buffer = weir__drained(s) - drained;
    uint64_t more_back = incomplete_of_more(config, more, done, *more_done), buffer_back = 0;
    if (more_back == of_more)
        buffer_back = incomplete_bytes(config, config->buffer + drained, of_buffer);
    uint64_t total = more_back + buffer_back;
    if (!total || !config->regular)
        return;
    int64_t end = end_of_our_write(config);
    if (end < (int64_t)total)
        return;
    drained = weir__drained(s) - buffer_back;
    if (config->spill)
        weir__spill_take_back(s, drained, buffer_back, total, (uint64_t)end);
    if (weir__kernel.ftruncate(config->fd, (off_t)(end - (int64_t)total)) == 0) {
        WEIR_PUBLISH(&weir__head(s)->drained, drained);
        state->stats.written_bytes -= total;
        *more_done -= more_back;
    } else if (config->spill) {
        WEIR_PUBLISH(&weir__head(s)->drained, drained + buffer_back);
    }
    if (config->spill)
        weir__spill_write_end(s, 0);
}
