/* calls.c: the program's read(2), write(2) and writev(2), and their fast paths, which make no system call. */
#include "functions.h"

#include "gather.h"
#include "libc.h"

typedef long read_call(int, void *, size_t);
typedef long write_call(int, const void *, size_t);

#if WEIR_HAS_DISPATCH
/* A signal handler that interrupts a fast path finds in_fast_path set, and neither gathers nor restarts the
   region. But its system calls may end the session, and then the selector is 0: an appended byte is then written
   at once, and a byte that was returned to the file is read again. The high half of head and in_used counts the
   calls. */
static inline long write_fast(struct session *s, int fd, const char *from, size_t n) {
    if (unlikely(fd != s->out_fd || n - 1 >= s->fast_write_max || s->in_fast_path)) return 0;
    if (unlikely(!pages_are_noted(&s->readable, from, n))) return 0;
    s->in_fast_path = 1;
    /* A handler that ran before this may have ended the session, or gathered writes of another descriptor. */
    if (unlikely(fd != s->out_fd || n - 1 >= s->fast_write_max)) return s->in_fast_path = 0;
    struct weir_region *region = s->region;
    uint64_t head = region->head;
    int fits = (uint32_t)head + n <= s->out_room;
    if (likely(fits)) {
        char *to = region->out + (uint32_t)head;
        if (n == 1) *(volatile char *)to = *from;
        else text_put(to, from, n);
        __asm__ volatile("" ::: "memory"); /* weir may read the region at any time: store the bytes first */
        if (unlikely(!s->in_fast_path)) return 0;  /* a child that a handler has forked: the region is its parent's */
        region->head = head + WEIR_CALL_UNIT + n;
    }
    s->in_fast_path = 0;
    if (unlikely(!s->selector || region->closed)) gather_end_now();
    return fits ? (long)n : 0;
}

static inline long read_fast(struct session *s, int fd, char *to, size_t n) {
    if (unlikely(fd != s->in_fd || n - 1 >= s->fast_read_max || s->in_fast_path)) return 0;
    if (unlikely(!pages_are_noted(&s->writable, to, n))) return 0;
    s->in_fast_path = 1;
    if (unlikely(fd != s->in_fd || n - 1 >= s->fast_read_max)) return s->in_fast_path = 0;
    struct weir_region *region = s->region;
    uint64_t used = region->in_used, now = used + WEIR_CALL_UNIT + n;
    int available = (uint32_t)now <= region->in_length;
    if (likely(available)) {
        const char *from = s->in_bytes + (uint32_t)used;
        if (n == 1) *(volatile char *)to = *from;
        else text_put(to, from, n);
        if (unlikely(!s->in_fast_path)) return 0;
        region->in_used = now;
        /* The bytes may have been returned to the file. */
        if (unlikely(!s->selector)) available = region->in_used != now;
    }
    s->in_fast_path = 0;
    return available ? (long)n : 0;
}

/* Return true if the fast path missed only because the pages were not noted, and note them. */
static inline int notes_readable(struct session *s, int fd, const char *from, size_t n) {
    return fd == s->out_fd && n - 1 < s->fast_write_max && !pages_are_noted(&s->readable, from, n) &&
           pages_note_readable(&s->readable, from, n);
}

static inline int notes_writable(struct session *s, int fd, char *to, size_t n) {
    return fd == s->in_fd && n - 1 < s->fast_read_max && !pages_are_noted(&s->writable, to, n) &&
           pages_note_writable(&s->writable, to, n);
}
#else
#define write_fast(s, fd, from, n) 0L
#define read_fast(s, fd, to, n) 0L
#define notes_readable(s, fd, from, n) 0
#define notes_writable(s, fd, to, n) 0
#define gather_write(fd, from, n, done) (*(done) = NOT_DONE, 0L)
#define gather_read(fd, to, n, done) (*(done) = NOT_DONE, 0L)
#endif

static long write_next(int fd, const void *from, size_t n) {
    write_call *call = NEXT("write");
    int done;
    long kernel = gather_write(fd, from, n, &done);
    if (done == DONE) return result(kernel);
    return call ? call(fd, from, n) : result(sys_write(fd, from, n));
}

static __attribute__((noinline)) long write_slow(int fd, const void *from, size_t n) {
    order_flush(fd);
    return write_next(fd, from, n);
}

static long read_next(int fd, void *to, size_t n) {
    read_call *call = NEXT("read");
    int done;
    if (gather_permits_read(fd)) return result(sys_read(fd, to, n));
    long kernel = gather_read(fd, to, n, &done);
    if (done == DONE) return result(kernel);
    return call && done == NOT_DONE ? call(fd, to, n) : result(sys_read(fd, to, n));
}

static __attribute__((noinline)) long read_slow(int fd, void *to, size_t n) {
    long got = read_next(fd, to, n);
    if (fd == 0 && got > 0) private_stdin_note_read();
    return got;
}

/* Handle more than one byte. They are not inlined, so that the call of one byte saves no registers. */
static __attribute__((noinline)) long write_some(int fd, const void *from, size_t n) {
    long done = write_fast(session, fd, from, n);
    if (!done && notes_readable(session, fd, from, n)) done = write_fast(session, fd, from, n);
    return done ? done : write_slow(fd, from, n);
}

static __attribute__((noinline)) long read_some(int fd, void *to, size_t n) {
    long done = read_fast(session, fd, to, n);
    if (!done && notes_writable(session, fd, to, n)) done = read_fast(session, fd, to, n);
    return done ? done : read_slow(fd, to, n);
}

long calls_write(int fd, const void *from, size_t n) {
    long done = write_fast(session, fd, from, n);
    if (!done && notes_readable(session, fd, from, n)) done = write_fast(session, fd, from, n);
    return done ? done : write_next(fd, from, n);
}

long calls_read(int fd, void *to, size_t n) { return read_some(fd, to, n); }

EXPORT write_call write;
EXPORT long write(int fd, const void *from, size_t n) {
    return n == 1 && likely(write_fast(session, fd, from, 1)) ? 1 : write_some(fd, from, n);
}

struct part { /* struct iovec */
    const char *from;
    size_t n;
};

#if WEIR_HAS_DISPATCH
/* Handles a writev of few bytes as one write. *done stays NOT_DONE for others. */
static long write_joined(int fd, const struct part *parts, int count, int *done) {
    char all[MAX_CALL_BYTES], *to = all;
    struct noted_pages *pages = &session->readable;
    int late = gather_take_late_error(fd);
    if (late) return *done = DONE, -late;
    if (!gather_wants_parts()) return 0;
    for (int i = 0; i < count; i++) {
        if (!pages_readable(pages, &parts[i], sizeof parts[i])) return 0;
        if (parts[i].n > (size_t)(all + MAX_CALL_BYTES - to)) {
            session->direct_calls = 0; /* the next large ones are not examined */
            return 0;
        }
        if (parts[i].n && !pages_readable(pages, parts[i].from, parts[i].n)) return 0;
        to = text_put(to, parts[i].from, parts[i].n);
    }
    long n = to - all;
    if (n && write_fast(session, fd, all, (size_t)n)) return *done = DONE, n;
    return n ? gather_write(fd, all, (size_t)n, done) : 0;
}
#else
#define write_joined(fd, parts, count, done) ((void)(parts), (void)(done), 0L)
#endif

EXPORT long writev(int fd, const void *parts, int count);
EXPORT long writev(int fd, const void *parts, int count) {
    long (*call)(int, const void *, int) = NEXT("writev");
    int done = NOT_DONE;
    order_flush(fd);
    long kernel = config.coalesce && count > 0 ? write_joined(fd, parts, count, &done) : 0;
    if (done == DONE) return result(kernel);
    return call ? call(fd, parts, count) : result(sys3(__NR_writev, fd, parts, count));
}

EXPORT read_call read;
EXPORT long read(int fd, void *to, size_t n) {
    return n == 1 && likely(read_fast(session, fd, to, 1)) ? 1 : read_some(fd, to, n);
}

EXPORT long __read_chk(int fd, void *to, size_t n, size_t room);
EXPORT long __read_chk(int fd, void *to, size_t n, size_t room) {
    long (*call)(int, void *, size_t, size_t) = NEXT("__read_chk");
    return n > room && call ? call(fd, to, n, room) : read(fd, to, n); /* libc's function aborts the program */
}
