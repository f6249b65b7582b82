/* sink_fd.c: streams over descriptors. */
#include "private.h"

#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#ifndef TIOCGDEV
#define TIOCGDEV _IOR('T', 0x32, unsigned)
#endif

#ifndef RWF_NOWAIT
#define RWF_NOWAIT 0x00000008
#endif

ssize_t weir__fd_write(weir_stream *s, const struct iovec *iov, int count)
{
    int fd = weir__config(s)->fd;
    if (count == 1) /* write(2) has less overhead than writev(2) */
        return WEIR_CALL(weir__kernel.write(fd, iov->iov_base, iov->iov_len));
    return WEIR_CALL(weir__kernel.writev(fd, iov, count));
}

int weir__fd_reopen(int fd, int flags)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return weir__open_repeated(path, O_WRONLY | O_CLOEXEC | flags, 0);
}

/* The program may have replaced the descriptor by another file since the stream was opened. */
static bool is_still_pipe(int fd)
{
    struct stat status;
    return weir__kernel.fstat(fd, &status) == 0 && S_ISFIFO(status.st_mode);
}

/* Writes to a pipe of a kernel without RWF_NOWAIT for pipes. A second open file has its own O_NONBLOCK; it is
 * closed at once, because it keeps the reader from seeing the end. */
static ssize_t write_reopened(weir_stream *s, const struct iovec *iov, int count)
{
    int again = weir__fd_reopen(weir__config(s)->fd, O_NONBLOCK);
    ssize_t result = -EBADF;
    if (again >= 0 && is_still_pipe(again))
        result = WEIR_CALL(weir__kernel.writev(again, iov, count));
    else /* without /proc, or permission, or a reader */
        result = weir__fd_write(s, iov, count);
    if (again >= 0)
        weir__kernel.close(again);
    return result;
}

static ssize_t write_pipe_now(weir_stream *s, const struct iovec *iov, int count)
{
    int fd = weir__config(s)->fd;
    ssize_t result = WEIR_CALL(weir__kernel.pwritev2(fd, iov, count, -1, RWF_NOWAIT));
    if (result == -EOPNOTSUPP || result == -EINVAL || result == -ENOSYS || result == -EPERM) /* before Linux 6.4 */
        return write_reopened(s, iov, count);
    return result == -EAGAIN && !is_still_pipe(fd) ? weir__fd_write(s, iov, count) : result;
}

/* Returns whether both are one terminal: /dev/ptmx opened again is another one, and so may be /dev/tty. */
static bool is_same_terminal(int fd, int again)
{
    unsigned device = 0, device_again = 1;
    return weir__kernel.ioctl(fd, TIOCGDEV, &device) == 0 && weir__kernel.ioctl(again, TIOCGDEV, &device_again) == 0 &&
           device == device_again;
}

/* A single byte fits into a terminal that poll(2) reports as writable, unless another process fills it meanwhile. */
static ssize_t write_byte_if_ready(int fd, const struct iovec *iov)
{
    struct pollfd ready = {.fd = fd, .events = POLLOUT};
    if (weir__kernel.poll(&ready, 1, 0) == 0)
        return -EAGAIN;
    return WEIR_CALL(weir__kernel.write(fd, iov->iov_base, 1));
}

/* No flag of a call keeps a write to a terminal from blocking, only O_NONBLOCK, which the program's own open file must not
 * get. A terminal of another user, or the master end of one, cannot be opened again. */
static ssize_t write_terminal_now(weir_stream *s, const struct iovec *iov, int count)
{
    int fd = weir__config(s)->fd, again = weir__fd_reopen(fd, O_NONBLOCK | O_NOCTTY);
    ssize_t result = again >= 0 && is_same_terminal(fd, again) ? WEIR_CALL(weir__kernel.writev(again, iov, count))
                                                               : write_byte_if_ready(fd, iov);
    if (again >= 0)
        weir__kernel.close(again);
    return result;
}

/* Other files: regular ones do not wait for a reader. */
ssize_t weir__fd_write_now(weir_stream *s, const struct iovec *iov, int count)
{
    const struct weir__config *config = weir__config(s);
    struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)iov, .msg_iovlen = (unsigned)count};
    if (config->is_pipe)
        return write_pipe_now(s, iov, count);
    if (config->terminal)
        return write_terminal_now(s, iov, count);
    ssize_t result = config->is_socket ? WEIR_CALL(weir__kernel.sendmsg(config->fd, &message, MSG_DONTWAIT)) : -ENOTSOCK;
    return result == -ENOTSOCK ? weir__fd_write(s, iov, count) : result;
}

ssize_t weir__fd_read(weir_stream *s, void *to, size_t bytes)
{
    return WEIR_CALL(weir__kernel.read(weir__config(s)->fd, to, bytes));
}

int64_t weir__fd_seek(weir_stream *s, int64_t offset, int whence)
{
    return WEIR_CALL(weir__kernel.lseek(weir__config(s)->fd, offset, whence));
}

int weir__fd_sync(weir_stream *s, enum weir_durability level)
{
    int fd = weir__config(s)->fd;
    int64_t result;
    do
        result = WEIR_CALL(level >= WEIR_WHOLE ? weir__kernel.fsync(fd) : weir__kernel.fdatasync(fd));
    while (result == -EINTR);
    return (int)result;
}

/* Ignores EINTR: Linux has closed the descriptor nevertheless, see close(2). */
int weir__fd_close(weir_stream *s)
{
    int result = (int)WEIR_CALL(weir__kernel.close(weir__config(s)->fd));
    return result == -EINTR ? 0 : result;
}

const struct weir__sink weir__sink_fd = {
    .write = weir__fd_write,
    .write_now = weir__fd_write_now,
    .read = weir__fd_read,
    .seek = weir__fd_seek,
    .sync = weir__fd_sync,
    .close = weir__fd_close,
};
