/* stopping_kernel.c: wraps each entry of weir__kernel. */
#include "stopping_kernel.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "../../src/kernel.h"

static struct weir__kernel real;
static struct stop stop;
static _Atomic uint64_t calls;
static _Atomic(const char *) stopped;
static _Thread_local bool is_first;

/* CANCELLABLE calls are cancellation points and fail with EINTR after a signal; PLAIN ones do neither. */
enum kind { PLAIN, CANCELLABLE };

/* Acts, without a cancellation if the call is no cancellation point. Keeps errno. */
static bool act(const char *name, enum kind kind)
{
    int error = errno, before, unused;
    stopped = name;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    bool interrupt = stop.action();
    pthread_setcancelstate(before, &unused);
    if (kind == CANCELLABLE)
        pthread_testcancel();
    errno = error;
    return interrupt;
}

/* Counts a call. Returns true if it is to fail with EINTR. */
static bool begin(const char *name, enum kind kind, uint64_t *number)
{
    bool counts = !is_first && (!stop.name || strcmp(stop.name, name) == 0);
    *number = counts ? atomic_fetch_add(&calls, 1) + 1 : 0;
    return *number && *number == stop.at && !stop.after && act(name, kind) && kind == CANCELLABLE;
}

static void end(const char *name, enum kind kind, uint64_t number)
{
    if (number && number == stop.at && stop.after)
        act(name, kind);
}

#define WRAP(type, name, kind, parameters, arguments)  \
    static type wrap_##name parameters                 \
    {                                                  \
        uint64_t number;                               \
        if (begin(#name, kind, &number)) {             \
            errno = EINTR;                             \
            return (type)-1;                           \
        }                                              \
        type result = real.name arguments;             \
        end(#name, kind, number);                      \
        return result;                                 \
    }

WRAP(int, open, CANCELLABLE, (const char *path, int flags, mode_t permissions), (path, flags, permissions))
WRAP(int, close, PLAIN, (int fd), (fd))
WRAP(ssize_t, read, CANCELLABLE, (int fd, void *to, size_t bytes), (fd, to, bytes))
WRAP(ssize_t, pread, CANCELLABLE, (int fd, void *to, size_t bytes, off_t at), (fd, to, bytes, at))
WRAP(ssize_t, write, CANCELLABLE, (int fd, const void *from, size_t bytes), (fd, from, bytes))
WRAP(ssize_t, writev, CANCELLABLE, (int fd, const struct iovec *iov, int count), (fd, iov, count))
WRAP(ssize_t, pwrite, CANCELLABLE, (int fd, const void *from, size_t bytes, off_t at), (fd, from, bytes, at))
WRAP(ssize_t, pwritev2, CANCELLABLE, (int fd, const struct iovec *iov, int count, off_t at, int flags),
     (fd, iov, count, at, flags))
WRAP(int, pipe2, PLAIN, (int fds[2], int flags), (fds, flags))
WRAP(ssize_t, tee, CANCELLABLE, (int from, int to, size_t bytes, unsigned flags), (from, to, bytes, flags))
WRAP(ssize_t, recv, CANCELLABLE, (int fd, void *to, size_t bytes, int flags), (fd, to, bytes, flags))
WRAP(ssize_t, sendmsg, CANCELLABLE, (int fd, const struct msghdr *message, int flags), (fd, message, flags))
WRAP(off_t, lseek, PLAIN, (int fd, off_t offset, int whence), (fd, offset, whence))
WRAP(int, fstat, PLAIN, (int fd, struct stat *status), (fd, status))
WRAP(int, statx, PLAIN, (int fd, const char *path, int flags, unsigned mask, void *status),
     (fd, path, flags, mask, status))
WRAP(int, ioctl, PLAIN, (int fd, unsigned long request, void *argument), (fd, request, argument))
/* Only a wait for a lock is interrupted. */
WRAP(int, fcntl, command == F_OFD_SETLKW ? CANCELLABLE : PLAIN, (int fd, int command, void *argument), (fd, command, argument))
WRAP(int, fsync, CANCELLABLE, (int fd), (fd))
WRAP(int, fdatasync, CANCELLABLE, (int fd), (fd))
WRAP(int, ftruncate, PLAIN, (int fd, off_t bytes), (fd, bytes))
WRAP(int, fallocate, CANCELLABLE, (int fd, int mode, off_t offset, off_t bytes), (fd, mode, offset, bytes))
WRAP(int, fadvise, PLAIN, (int fd, off_t offset, off_t bytes, int advice), (fd, offset, bytes, advice))
WRAP(int, rename, PLAIN, (const char *from, const char *to), (from, to))
WRAP(int, unlink, PLAIN, (const char *path), (path))
WRAP(int, poll, PLAIN, (struct pollfd *fds, nfds_t count, int timeout_ms), (fds, count, timeout_ms))
WRAP(void *, mmap, PLAIN, (void *address, size_t bytes, int protection, int flags, int fd, off_t offset),
     (address, bytes, protection, flags, fd, offset))
WRAP(int, munmap, PLAIN, (void *address, size_t bytes), (address, bytes))
WRAP(int, uring_setup, PLAIN, (unsigned entries, void *parameters), (entries, parameters))
WRAP(int, uring_enter, CANCELLABLE, (int fd, unsigned submit, unsigned complete, unsigned flags),
     (fd, submit, complete, flags))

/* The names of all calls, in the order of struct weir__kernel. */
#define CALL_NAMES(X) \
    X(open) X(close) X(read) X(pread) X(write) X(writev) X(pwrite) X(pwritev2) X(pipe2) X(tee) X(recv) \
    X(sendmsg) X(lseek) X(fstat) X(statx) X(ioctl) X(fcntl) X(fsync) X(fdatasync) X(ftruncate) \
    X(fallocate) X(fadvise) X(rename) X(unlink) X(poll) X(mmap) X(munmap) X(uring_setup) X(uring_enter)

#define NAME_OF(name) #name,
const char *const stopping_calls[] = {CALL_NAMES(NAME_OF) NULL};
static_assert(sizeof stopping_calls / sizeof *stopping_calls == STOPPING_CALLS + 1 &&
                  sizeof(struct weir__kernel) == STOPPING_CALLS * sizeof(void (*)(void)),
              "a call of the kernel's table is not wrapped");

void stopping_install(void)
{
    real = weir__kernel;
#define INSTALL(name) weir__kernel.name = wrap_##name;
    CALL_NAMES(INSTALL)
}

static int refuse_fallocate(int fd, int mode, off_t offset, off_t bytes)
{
    (void)fd, (void)mode, (void)offset, (void)bytes;
    errno = EOPNOTSUPP;
    return -1;
}

void stopping_begin(const struct stop *next)
{
    real.fallocate = next->refuses_fallocate ? refuse_fallocate : fallocate;
    is_first = true;
    calls = 0;
    stopped = NULL;
    stop = *next;
}

uint64_t stopping_count(void) { return calls; }
const char *stopping_name(void) { return stopped; }
