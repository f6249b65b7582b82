/* kernel.c: the table of system calls, filled with the C library's functions. */
#include "kernel.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#if !defined(SYS_io_uring_setup) /* the numbers are the same on all architectures that libweir supports */
#define SYS_io_uring_setup 425
#define SYS_io_uring_enter 426
#endif

static int call_open(const char *path, int flags, mode_t permissions) { return open(path, flags, permissions); }
static int call_fcntl(int fd, int command, void *argument) { return fcntl(fd, command, argument); }
static int call_fstat(int fd, struct stat *status) { return fstat(fd, status); }

static int call_ioctl(int fd, unsigned long request, void *argument)
{
    /* The parameter is unsigned long in glibc and int in musl. */
    return ioctl(fd, (unsigned)request, argument);
}

/* Direct system calls: older C libraries have no function for them, or not with flags. */
static int call_statx(int fd, const char *path, int flags, unsigned mask, void *status)
{
    return (int)syscall(SYS_statx, fd, path, flags, mask, status);
}

static ssize_t call_pwritev2(int fd, const struct iovec *iov, int count, off_t offset, int flags)
{
    if (flags == 0) /* also available on older kernels and in emulators */
        return pwritev(fd, iov, count, offset);
    return syscall(SYS_pwritev2, fd, iov, (long)count, (long)offset, 0L, (long)flags);
}

static int call_uring_setup(unsigned entries, void *parameters)
{
    return (int)syscall(SYS_io_uring_setup, entries, parameters);
}

static int call_uring_enter(int fd, unsigned submit, unsigned complete, unsigned flags)
{
    return (int)syscall(SYS_io_uring_enter, fd, submit, complete, flags, NULL, 0);
}

struct weir__kernel weir__kernel = {
    .open = call_open,
    .close = close,
    .read = read,
    .pread = pread,
    .write = write,
    .writev = writev,
    .pwrite = pwrite,
    .pwritev2 = call_pwritev2,
    .pipe2 = pipe2,
    .tee = tee,
    .recv = recv,
    .sendmsg = sendmsg,
    .lseek = lseek,
    .fstat = call_fstat,
    .statx = call_statx,
    .ioctl = call_ioctl,
    .fcntl = call_fcntl,
    .fsync = fsync,
    .fdatasync = fdatasync,
    .ftruncate = ftruncate,
    .fallocate = fallocate,
    .fadvise = posix_fadvise,
    .rename = rename,
    .unlink = unlink,
    .poll = poll,
    .mmap = mmap,
    .munmap = munmap,
    .uring_setup = call_uring_setup,
    .uring_enter = call_uring_enter,
};

int weir__open_repeated(const char *path, int oflags, mode_t permissions)
{
    int fd;
    do
        fd = (int)WEIR_CALL(weir__kernel.open(path, oflags, permissions));
    while (fd == -EINTR);
    return fd;
}
