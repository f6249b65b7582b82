/* order.c: with order=1, flushes a descriptor's stdio streams before the program itself writes to it. */
#include "functions.h"

#include "config.h"
#include "libc.h"
#include "streams.h"

void order_flush(int fd) {
    if (!config.order) return;
    int *error = __errno_location ? __errno_location() : NULL, saved = error ? *error : 0;
    streams_flush(fd);
    if (error) *error = saved;
}

#define FLUSH_BEFORE(type, name, arguments, ...) \
    EXPORT type name arguments; \
    EXPORT type name arguments { \
        type(*call) arguments = NEXT(#name); \
        order_flush(fd); \
        return call ? call(__VA_ARGS__) : fail(-38); \
    }

FLUSH_BEFORE(long, pwrite, (int fd, const void *from, size_t n, long at), fd, from, n, at)
FLUSH_BEFORE(long, pwrite64, (int fd, const void *from, size_t n, long at), fd, from, n, at)
FLUSH_BEFORE(long, pwritev, (int fd, const void *parts, int count, long at), fd, parts, count, at)
FLUSH_BEFORE(long, send, (int fd, const void *from, size_t n, int flags), fd, from, n, flags)
FLUSH_BEFORE(long, sendto, (int fd, const void *from, size_t n, int flags, const void *to, unsigned size), fd, from, n,
             flags, to, size)
FLUSH_BEFORE(long, sendmsg, (int fd, const void *message, int flags), fd, message, flags)
FLUSH_BEFORE(long, sendfile, (int fd, int from, long *at, size_t n), fd, from, at, n)
FLUSH_BEFORE(long, sendfile64, (int fd, int from, long *at, size_t n), fd, from, at, n)
