/* kernel.h: all system calls of the library go through one table, which tests replace. */
#ifndef WEIR_KERNEL_H
#define WEIR_KERNEL_H

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>

/* Each member has the contract of the function of the same name in section 2 of the manual: it returns -1
 * and sets errno on failure. */
struct weir__kernel {
    int (*open)(const char *path, int flags, mode_t permissions);
    int (*close)(int fd);
    ssize_t (*read)(int fd, void *to, size_t bytes);
    ssize_t (*pread)(int fd, void *to, size_t bytes, off_t offset);
    ssize_t (*write)(int fd, const void *from, size_t bytes);
    ssize_t (*writev)(int fd, const struct iovec *iov, int count);
    ssize_t (*pwrite)(int fd, const void *from, size_t bytes, off_t offset);
    ssize_t (*pwritev2)(int fd, const struct iovec *iov, int count, off_t offset, int flags);
    int (*pipe2)(int fds[2], int flags);
    ssize_t (*tee)(int from, int to, size_t bytes, unsigned flags);
    ssize_t (*recv)(int fd, void *to, size_t bytes, int flags);
    ssize_t (*sendmsg)(int fd, const struct msghdr *message, int flags);
    off_t (*lseek)(int fd, off_t offset, int whence);
    int (*fstat)(int fd, struct stat *status);
    int (*statx)(int fd, const char *path, int flags, unsigned mask, void *status); /* the kernel's struct */
    int (*ioctl)(int fd, unsigned long request, void *argument);
    int (*fcntl)(int fd, int command, void *argument); /* integer arguments are cast */
    int (*fsync)(int fd);
    int (*fdatasync)(int fd);
    int (*ftruncate)(int fd, off_t bytes);
    int (*fallocate)(int fd, int mode, off_t offset, off_t bytes);
    int (*fadvise)(int fd, off_t offset, off_t bytes,
                   int advice); /* posix_fadvise(3): returns the error number */
    int (*rename)(const char *from, const char *to);
    int (*unlink)(const char *path);
    int (*poll)(struct pollfd *fds, nfds_t count, int timeout_ms);
    void *(*mmap)(void *address, size_t bytes, int protection, int flags, int fd, off_t offset);
    int (*munmap)(void *address, size_t bytes);
    int (*uring_setup)(unsigned entries, void *parameters);
    int (*uring_enter)(int fd, unsigned submit, unsigned complete, unsigned flags);
};

extern struct weir__kernel weir__kernel;

/* Converts -1 and errno to -errno. */
#define WEIR_CALL(call) weir__result(call)
static inline int64_t weir__result(int64_t result) { return result < 0 ? -errno : result; }

/* Repeats an open(2) that a signal interrupts: a FIFO waits for its other end, and some file systems for a server. Returns
 * the descriptor or -errno. */
int weir__open_repeated(const char *path, int oflags, mode_t permissions);

#endif /* WEIR_KERNEL_H */
