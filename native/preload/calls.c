/* calls.c: the program's own read(2) and write(2). */
#include "libc.h"
#include "order.h"

EXPORT long write(int fd, const void *from, size_t n);
EXPORT long write(int fd, const void *from, size_t n) {
    long (*call)(int, const void *, size_t) = NEXT("write");
    order_keep(fd);
    return call ? call(fd, from, n) : result(sys_write(fd, from, n));
}
