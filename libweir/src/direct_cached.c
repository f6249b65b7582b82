/* direct_cached.c: transfers parts of blocks, which O_DIRECT does not accept, through the page cache. */
#include "direct.h"

#include <stdio.h>
#include <unistd.h>

static int64_t move(int fd, int64_t offset, int whence)
{
    return WEIR_CALL(weir__kernel.lseek(fd, offset, whence));
}

static int64_t length_of(const struct iovec *iov, int count)
{
    int64_t bytes = 0;
    for (int i = 0; i < count; i++)
        bytes += (int64_t)iov[i].iov_len;
    return bytes;
}

/* Returns whether cached_fd still refers to the file. The program may have closed a range of descriptors,
 * and another file may have the number now. */
static bool is_cached_fd_valid(const struct weir__direct *d)
{
    struct stat status;
    return d->cached_fd >= 0 && weir__kernel.fstat(d->cached_fd, &status) == 0 && status.st_dev == d->dev &&
           status.st_ino == d->ino;
}

static bool ensure_cached_fd(weir_stream *s)
{
    const struct weir__config *config = weir__config(s);
    char path[32];
    if (is_cached_fd_valid(config->direct))
        return true;
    int oflags = config->can_read && config->can_write ? O_RDWR : config->can_write ? O_WRONLY : O_RDONLY;
    snprintf(path, sizeof path, "/proc/self/fd/%d", config->fd);
    int fd = weir__open_repeated(path, oflags | (config->append ? O_APPEND : 0) | O_CLOEXEC, 0);
    config->direct->cached_fd = fd < 0 ? -1 : fd;
    return is_cached_fd_valid(config->direct); /* /proc may belong to another PID namespace */
}

void weir__cached_close(weir_stream *s)
{
    struct weir__direct *d = weir__config(s)->direct;
    if (is_cached_fd_valid(d))
        weir__kernel.close(d->cached_fd);
    d->cached_fd = -1;
}

/* Appends through the second descriptor and moves the first one behind the appended bytes. */
static ssize_t append(weir_stream *s, const struct iovec *iov, int count)
{
    const struct weir__config *config = weir__config(s);
    ssize_t written = WEIR_CALL(weir__kernel.writev(config->direct->cached_fd, iov, count));
    int64_t end = written > 0 ? move(config->direct->cached_fd, 0, SEEK_CUR) : -1;
    if (end >= 0)
        move(config->fd, end, SEEK_SET);
    return written;
}

/* Moves the file offset over the range before the write, and back over the unwritten part after it. A concurrent writer that
 * shares the file offset then gets a range of its own, as with write(2). */
static ssize_t write_at_position(weir_stream *s, const struct iovec *iov, int count)
{
    const struct weir__config *config = weir__config(s);
    int64_t bytes = length_of(iov, count), end = move(config->fd, bytes, SEEK_CUR);
    if (end < 0)
        return end;
    ssize_t written = WEIR_CALL(weir__kernel.pwritev2(config->direct->cached_fd, iov, count, end - bytes, 0));
    if (written < bytes)
        move(config->fd, (written > 0 ? written : 0) - bytes, SEEK_CUR);
    return written;
}

static int64_t set_flags(int fd, int64_t flags)
{
    return WEIR_CALL(weir__kernel.fcntl(fd, F_SETFL, (void *)(intptr_t)flags));
}

/* Transfers without a second descriptor: switches O_DIRECT off for one call. `iov` NULL: reads. */
static ssize_t transfer_with_flag_off(weir_stream *s, const struct iovec *iov, int count, void *to,
                                      size_t bytes)
{
    int fd = weir__config(s)->fd;
    int64_t flags = WEIR_CALL(weir__kernel.fcntl(fd, F_GETFL, NULL));
    int64_t result = flags < 0 ? flags : set_flags(fd, flags & ~O_DIRECT);
    if (result < 0)
        return result;
    result = iov ? weir__fd_write(s, iov, count) : weir__fd_read(s, to, bytes);
    set_flags(fd, flags);
    return result;
}

ssize_t weir__cached_write(weir_stream *s, const struct iovec *iov, int count)
{
    if (!ensure_cached_fd(s))
        return transfer_with_flag_off(s, iov, count, NULL, 0);
    return weir__config(s)->append ? append(s, iov, count) : write_at_position(s, iov, count);
}

ssize_t weir__cached_read(weir_stream *s, void *to, size_t bytes)
{
    const struct weir__config *config = weir__config(s);
    if (!ensure_cached_fd(s))
        return transfer_with_flag_off(s, NULL, 0, to, bytes);
    int64_t at = move(config->fd, 0, SEEK_CUR);
    if (at < 0)
        return at;
    ssize_t got = WEIR_CALL(weir__kernel.pread(config->direct->cached_fd, to, bytes, at));
    if (got > 0)
        move(config->fd, at + got, SEEK_SET);
    return got;
}
