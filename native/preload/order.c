/* order.c: with order=1, what stdio holds for a descriptor is out before the program itself writes to it. */
#include "order.h"

#include "config.h"
#include "libc.h"
#include "streams.h"

void order_keep(int fd) {
    if (!config.order) return;
    int *place = __errno_location ? __errno_location() : NULL, kept = place ? *place : 0;
    streams_flush(fd);
    if (place) *place = kept;
}

#define BEFORE(type, name, arguments, ...) \
    EXPORT type name arguments; \
    EXPORT type name arguments { \
        type(*call) arguments = NEXT(#name); \
        order_keep(fd); \
        return call ? call(__VA_ARGS__) : fail(-38); \
    }

BEFORE(long, pwrite, (int fd, const void *from, size_t n, long at), fd, from, n, at)
BEFORE(long, pwrite64, (int fd, const void *from, size_t n, long at), fd, from, n, at)
BEFORE(long, pwritev, (int fd, const void *parts, int count, long at), fd, parts, count, at)
BEFORE(long, send, (int fd, const void *from, size_t n, int flags), fd, from, n, flags)
BEFORE(long, sendto, (int fd, const void *from, size_t n, int flags, const void *to, unsigned size), fd, from, n, flags,
       to, size)
BEFORE(long, sendmsg, (int fd, const void *message, int flags), fd, message, flags)
BEFORE(long, sendfile, (int fd, int from, long *at, size_t n), fd, from, at, n)
BEFORE(long, sendfile64, (int fd, int from, long *at, size_t n), fd, from, at, n)
