/* Injects short transfers, EINTR, and a kernel without cachestat(2). The linker replaces the calls of the loops
 * by these functions (--wrap). */
#include <errno.h>
#include <liburing.h>
#include <stdarg.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "support.h"

int disturbed, refuse_after_eintr;
bool no_cachestat;
int max_parts, sync_count;
uint64_t largest_part, size_at_sync[MAX_SYNCS];

static bool interrupted(void)
{
    static unsigned calls;
    if (refuse_after_eintr != 0) {
        errno = refuse_after_eintr == 1 ? EINTR : EOPNOTSUPP;
        refuse_after_eintr = 2;
        return true;
    }
    if (!disturbed || ++calls % 3 != 0)
        return false;
    errno = EINTR;
    return true;
}

static size_t shortened(size_t bytes)
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

WRAP(read, (int fd, void *to, size_t n), (fd, to, shortened(n)))
WRAP(write, (int fd, const void *from, size_t n), (fd, from, shortened(n)))
WRAP(pread, (int fd, void *to, size_t n, off_t at), (fd, to, shortened(n), at))
WRAP(pwrite, (int fd, const void *from, size_t n, off_t at), (fd, from, shortened(n), at))
WRAP(sendfile, (int out, int in, off_t *at, size_t n), (out, in, at, shortened(n)))
WRAP(splice, (int in, off_t *in_at, int out, off_t *out_at, size_t n, unsigned flags),
     (in, in_at, out, out_at, shortened(n), flags))
WRAP(copy_file_range, (int in, off_t *in_at, int out, off_t *out_at, size_t n, unsigned flags),
     (in, in_at, out, out_at, shortened(n), flags))

static void record_parts(const struct iovec *vector, int count)
{
    max_parts = count > max_parts ? count : max_parts;
    for (int i = 0; i < count; i++)
        largest_part = vector[i].iov_len > largest_part ? vector[i].iov_len : largest_part;
}

/* Shortens a vector: to the first half of several records, or to a part of one record. */
#define WRAP_VECTOR(call)                                                                                    \
    ssize_t __real_##call(int fd, const struct iovec *vector, int count);                                    \
    ssize_t __wrap_##call(int fd, const struct iovec *vector, int count);                                    \
    ssize_t __wrap_##call(int fd, const struct iovec *vector, int count)                                     \
    {                                                                                                        \
        if (interrupted())                                                                                   \
            return -1;                                                                                       \
        record_parts(vector, count);                                                                         \
        if (!disturbed)                                                                                      \
            return __real_##call(fd, vector, count);                                                         \
        const int few = (count + 1) / 2;                                                                     \
        const struct iovec part = {vector->iov_base, shortened(vector->iov_len)};                            \
        return few > 1 ? __real_##call(fd, vector, few) : __real_##call(fd, &part, 1);                       \
    }

WRAP_VECTOR(readv)
WRAP_VECTOR(writev)

int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __wrap_fsync(int fd)
{
    struct stat status;
    if (sync_count < MAX_SYNCS && fstat(fd, &status) == 0)
        size_at_sync[sync_count++] = (uint64_t)status.st_size;
    if (refuse_after_eintr != 0 && interrupted())
        return -1;
    return __real_fsync(fd);
}

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
/* Forwards six arguments also for calls with fewer, which only the address sanitizer rejects. */
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

/* Shortens the requests that are queued and not yet submitted. */
int __real_io_uring_submit_and_wait(struct io_uring *ring, unsigned wait);
int __wrap_io_uring_submit_and_wait(struct io_uring *ring, unsigned wait);
int __wrap_io_uring_submit_and_wait(struct io_uring *ring, unsigned wait)
{
    if (interrupted())
        return -EINTR;
    for (unsigned i = ring->sq.sqe_head; disturbed && i != ring->sq.sqe_tail; i++) {
        struct io_uring_sqe *entry = &ring->sq.sqes[i & *ring->sq.kring_mask];
        entry->len = (unsigned)shortened(entry->len);
    }
    return __real_io_uring_submit_and_wait(ring, wait);
}
