/* calls.c: the program's own read(2) and write(2), and the paths on which nothing but memory is touched. */
#include "gather.h"
#include "libc.h"
#include "order.h"

typedef long read_call(int, void *, size_t);
typedef long write_call(int, const void *, size_t);

#if WEIR_HAS_DISPATCH
static inline void copy(char *to, const char *from, size_t n) {
    if (likely(n == 1)) *to = *from;
    else text_put(to, from, n);
}

/* A handler that comes in between finds `busy` and leaves the bytes alone; if it has ended the session meanwhile, the
   generation is another one, and the call takes the slow path. */
static inline long append_fast(int fd, const char *from, size_t n) {
    struct session *s = session;
    if (unlikely(fd != s->out_fd || n - 1 >= s->out_small || s->busy)) return 0;
    struct weir_region *region = s->region;
    long taken = 0;
    s->busy = 1;
    uint64_t head = region->head;
    if (likely((uint32_t)head + n <= s->out_room)) {
        copy(region->out + (uint32_t)head, from, n);
        if (likely(swap_if(&region->head, head, head + n))) taken = (long)n;
    }
    s->served++;
    s->busy = 0;
    return taken;
}

static inline long take_fast(int fd, char *to, size_t n) {
    struct session *s = session;
    if (unlikely(fd != s->in_fd || n - 1 >= s->in_small || s->busy)) return 0;
    struct weir_region *region = s->region;
    long taken = 0;
    s->busy = 1;
    uint64_t used = region->in_used;
    if (likely((uint32_t)used + n <= region->in_length)) {
        copy(to, gather_in + (uint32_t)used, n);
        if (likely(swap_if(&region->in_used, used, used + n))) taken = (long)n;
    }
    s->served++;
    s->busy = 0;
    return taken;
}
#else
enum { DONE_NOT, DONE, DONE_RAW };
#define append_fast(fd, from, n) 0L
#define take_fast(fd, to, n) 0L
#define gather_write(fd, from, n, done) (*(done) = DONE_NOT, 0L)
#define gather_read(fd, to, n, done) (*(done) = DONE_NOT, 0L)
#endif

static __attribute__((noinline)) long write_slow(int fd, const void *from, size_t n) {
    write_call *call = NEXT("write");
    int done;
    order_keep(fd);
    long kernel = gather_write(fd, from, n, &done);
    if (done == DONE) return result(kernel);
    return call ? call(fd, from, n) : result(sys_write(fd, from, n));
}

static __attribute__((noinline)) long read_slow(int fd, void *to, size_t n) {
    read_call *call = NEXT("read");
    int done;
    long kernel = gather_read(fd, to, n, &done);
    if (done == DONE) return result(kernel);
    return call && done == DONE_NOT ? call(fd, to, n) : result(sys_read(fd, to, n));
}

EXPORT write_call write;
EXPORT long write(int fd, const void *from, size_t n) {
    long taken = config.order ? 0 : append_fast(fd, from, n);
    return likely(taken) ? taken : write_slow(fd, from, n);
}

EXPORT read_call read;
EXPORT long read(int fd, void *to, size_t n) {
    long taken = take_fast(fd, to, n);
    return likely(taken) ? taken : read_slow(fd, to, n);
}

EXPORT long __read_chk(int fd, void *to, size_t n, size_t room);
EXPORT long __read_chk(int fd, void *to, size_t n, size_t room) {
    long (*call)(int, void *, size_t, size_t) = NEXT("__read_chk");
    return n > room && call ? call(fd, to, n, room) : read(fd, to, n); /* theirs ends the program */
}
