/* sink_fd.c: streams over descriptors. */
#include "private.h"

ssize_t weir__fd_write(weir_stream *s, const struct iovec *iov, int count)
{
    int fd = weir__config(s)->fd;
    if (count == 1) /* write(2) has less overhead than writev(2) */
        return WEIR_CALL(weir__kernel.write(fd, iov->iov_base, iov->iov_len));
    return WEIR_CALL(weir__kernel.writev(fd, iov, count));
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
    .read = weir__fd_read,
    .seek = weir__fd_seek,
    .sync = weir__fd_sync,
    .close = weir__fd_close,
};
