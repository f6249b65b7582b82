/* Between the loops and the kernel: calls that move less than asked, signals that come first, and a kernel
 * without cachestat(2). The linker puts these in the way (--wrap). */
#include <errno.h>
#include <liburing.h>
#include <stdarg.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "support.h"

int disturbed;
bool no_cachestat;
int most_parts, syncs_seen;
uint64_t largest_part, size_at_sync[SYNCS_SEEN];

static bool interrupted(void)
{
    static unsigned calls;
    if (!disturbed || ++calls % 3 != 0)
        return false;
    errno = EINTR;
    return true;
}

static size_t less(size_t bytes)
{
    return disturbed && bytes > 1 ? bytes / 2 + 1 : bytes;
}

#define WRAP(call, parameters, asked)                                                                        \
    ssize_t __real_##call parameters;                                                                        \
    ssize_t __wrap_##call parameters;                                                                        \
    ssize_t __wrap_##call parameters                                                                         \
    {                                                                                                        \
        return interrupted() ? -1 : __real_##call asked;                                                     \
    }

WRAP(read, (int fd, void *to, size_t n), (fd, to, less(n)))
WRAP(write, (int fd, const void *from, size_t n), (fd, from, less(n)))
WRAP(pread, (int fd, void *to, size_t n, off_t at), (fd, to, less(n), at))
WRAP(pwrite, (int fd, const void *from, size_t n, off_t at), (fd, from, less(n), at))
WRAP(sendfile, (int out, int in, off_t *at, size_t n), (out, in, at, less(n)))
WRAP(splice, (int in, off_t *in_at, int out, off_t *out_at, size_t n, unsigned flags),
     (in, in_at, out, out_at, less(n), flags))
WRAP(copy_file_range, (int in, off_t *in_at, int out, off_t *out_at, size_t n, unsigned flags),
     (in, in_at, out, out_at, less(n), flags))

static void see_parts(const struct iovec *vector, int count)
{
    most_parts = count > most_parts ? count : most_parts;
    for (int i = 0; i < count; i++)
        largest_part = vector[i].iov_len > largest_part ? vector[i].iov_len : largest_part;
}

/* Of several records the first half of them, of one a part. */
#define WRAP_VECTOR(call)                                                                                    \
    ssize_t __real_##call(int fd, const struct iovec *vector, int count);                                    \
    ssize_t __wrap_##call(int fd, const struct iovec *vector, int count);                                    \
    ssize_t __wrap_##call(int fd, const struct iovec *vector, int count)                                     \
    {                                                                                                        \
        if (interrupted())                                                                                   \
            return -1;                                                                                       \
        see_parts(vector, count);                                                                            \
        if (!disturbed)                                                                                      \
            return __real_##call(fd, vector, count);                                                         \
        const int few = (count + 1) / 2;                                                                     \
        const struct iovec part = {vector->iov_base, less(vector->iov_len)};                                 \
        return few > 1 ? __real_##call(fd, vector, few) : __real_##call(fd, &part, 1);                       \
    }

WRAP_VECTOR(readv)
WRAP_VECTOR(writev)

int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __wrap_fsync(int fd)
{
    struct stat status;
    if (syncs_seen < SYNCS_SEEN && fstat(fd, &status) == 0)
        size_at_sync[syncs_seen++] = (uint64_t)status.st_size;
    return __real_fsync(fd);
}

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
/* Takes six arguments whether there are as many or not, which only the sanitizer minds. */
__attribute__((no_sanitize("address"))) long __wrap_syscall(long number, ...)
{
    long a[6];
    va_list arguments;
    va_start(arguments, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(arguments, long);
    va_end(arguments);
    if (number == 451 && no_cachestat) {
        errno = ENOSYS;
        return -1;
    }
    return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* Shortens what has been queued and not yet been submitted. */
int __real_io_uring_submit_and_wait(struct io_uring *ring, unsigned wait);
int __wrap_io_uring_submit_and_wait(struct io_uring *ring, unsigned wait);
int __wrap_io_uring_submit_and_wait(struct io_uring *ring, unsigned wait)
{
    if (interrupted())
        return -EINTR;
    for (unsigned i = ring->sq.sqe_head; disturbed && i != ring->sq.sqe_tail; i++) {
        struct io_uring_sqe *entry = &ring->sq.sqes[i & *ring->sq.kring_mask];
        entry->len = (unsigned)less(entry->len);
    }
    return __real_io_uring_submit_and_wait(ring, wait);
}
