/* calls.c: the program's own read(2) and write(2), and the paths on which nothing but memory is touched. */
#include "calls.h"

#include "gather.h"
#include "libc.h"
#include "order.h"

typedef long read_call(int, void *, size_t);
typedef long write_call(int, const void *, size_t);

#if WEIR_HAS_DISPATCH
/* A handler that comes in between finds `busy`: it gathers and starts over nothing. But its own calls may end the
   session, which shows in the selector: a byte that was appended after that goes out at once, and one that was taken
   after it was given back is read again. The high half of the words counts the calls. */
static inline long append_fast(struct session *s, int fd, const char *from, size_t n) {
    if (unlikely(fd != s->out_fd || n - 1 >= s->out_small || s->busy)) return 0;
    struct weir_region *region = s->region;
    s->busy = 1;
    uint64_t head = region->head;
    int fits = (uint32_t)head + n <= s->out_room;
    if (likely(fits)) {
        char *to = region->out + (uint32_t)head;
        if (n == 1) *(volatile char *)to = *from;
        else text_put(to, from, n);
        __asm__ volatile("" ::: "memory"); /* weir may look at any time: the bytes first */
        if (unlikely(!s->busy)) return 0;  /* a child that a handler forked: the region is its parent's */
        region->head = head + WEIR_ONE_CALL + n;
    }
    s->busy = 0;
    if (unlikely(!s->selector)) gather_settle();
    return fits ? (long)n : 0;
}

static inline long take_fast(struct session *s, int fd, char *to, size_t n) {
    if (unlikely(fd != s->in_fd || n - 1 >= s->in_small || s->busy)) return 0;
    struct weir_region *region = s->region;
    s->busy = 1;
    uint64_t used = region->in_used, now = used + WEIR_ONE_CALL + n;
    int got = (uint32_t)now <= region->in_length;
    if (likely(got)) {
        const char *from = s->in_bytes + (uint32_t)used;
        if (n == 1) *(volatile char *)to = *from;
        else text_put(to, from, n);
        if (unlikely(!s->busy)) return 0;
        region->in_used = now;
        if (unlikely(!s->selector)) got = region->in_used != now; /* given back with these bytes, or before them */
    }
    s->busy = 0;
    return got ? (long)n : 0;
}
#else
#define append_fast(s, fd, from, n) 0L
#define take_fast(s, fd, to, n) 0L
#define gather_write(fd, from, n, done) (*(done) = DONE_NOT, 0L)
#define gather_read(fd, to, n, done) (*(done) = DONE_NOT, 0L)
#endif

static long write_next(int fd, const void *from, size_t n) {
    write_call *call = NEXT("write");
    int done;
    long kernel = gather_write(fd, from, n, &done);
    if (done == DONE) return result(kernel);
    return call ? call(fd, from, n) : result(sys_write(fd, from, n));
}

static __attribute__((noinline)) long write_slow(int fd, const void *from, size_t n) {
    order_keep(fd);
    return write_next(fd, from, n);
}

static __attribute__((noinline)) long read_slow(int fd, void *to, size_t n) {
    read_call *call = NEXT("read");
    int done;
    if (gather_passes(fd)) return result(sys_read(fd, to, n));
    long kernel = gather_read(fd, to, n, &done);
    if (done == DONE) return result(kernel);
    return call && done == DONE_NOT ? call(fd, to, n) : result(sys_read(fd, to, n));
}

/* For more than one byte; apart, so that a single one costs no saved registers. */
static __attribute__((noinline)) long write_some(int fd, const void *from, size_t n) {
    long taken = append_fast(session, fd, from, n);
    return taken ? taken : write_slow(fd, from, n);
}

static __attribute__((noinline)) long read_some(int fd, void *to, size_t n) {
    long taken = take_fast(session, fd, to, n);
    return taken ? taken : read_slow(fd, to, n);
}

long calls_write(int fd, const void *from, size_t n) {
    long taken = append_fast(session, fd, from, n);
    return taken ? taken : write_next(fd, from, n);
}

long calls_read(int fd, void *to, size_t n) { return read_some(fd, to, n); }

EXPORT write_call write;
EXPORT long write(int fd, const void *from, size_t n) {
    return n == 1 && likely(append_fast(session, fd, from, 1)) ? 1 : write_some(fd, from, n);
}

struct part { /* iovec */
    const char *from;
    size_t n;
};

/* What is tiny in all goes the way of write(2). */
static long writev_joined(int fd, const struct part *parts, int count, int *done) {
    char all[SMALL], *to = all;
    (void)fd;
    for (int i = 0; i < count; i++) {
        if (parts[i].n > (size_t)(all + SMALL - to)) return 0;
        to = text_put(to, parts[i].from, parts[i].n);
    }
    long n = to - all;
    if (n && append_fast(session, fd, all, (size_t)n)) return *done = DONE, n;
    return n ? gather_write(fd, all, (size_t)n, done) : 0;
}

EXPORT long writev(int fd, const void *parts, int count);
EXPORT long writev(int fd, const void *parts, int count) {
    long (*call)(int, const void *, int) = NEXT("writev");
    int done = DONE_NOT;
    order_keep(fd);
    long kernel = config.coalesce && count > 0 ? writev_joined(fd, parts, count, &done) : 0;
    if (done == DONE) return result(kernel);
    return call ? call(fd, parts, count) : result(sys3(__NR_writev, fd, parts, count));
}

EXPORT read_call read;
EXPORT long read(int fd, void *to, size_t n) {
    return n == 1 && likely(take_fast(session, fd, to, 1)) ? 1 : read_some(fd, to, n);
}

EXPORT long __read_chk(int fd, void *to, size_t n, size_t room);
EXPORT long __read_chk(int fd, void *to, size_t n, size_t room) {
    long (*call)(int, void *, size_t, size_t) = NEXT("__read_chk");
    return n > room && call ? call(fd, to, n, room) : read(fd, to, n); /* theirs ends the program */
}
