/* gather.c: the begin and end of sessions, and the reads and writes that a session gathers. */
#include "gather.h"

#if WEIR_HAS_DISPATCH
#include <asm/errno.h>
#include <asm/ioctls.h>

#include "functions.h"
#include "dispatch.h"
#include "libc.h"
#include "signals.h"

enum { MADV_WIPE_ON_FORK = 18, WORTHWHILE_CALLS = 8, MAX_EXTRA_WARMUP = 4096, KCMP_VM = 1 };

static struct session none;
struct session *session = &none;
static int disabled;

void gather_start(void) {
    if (config.coalesce == COALESCE_OFF) return;
    struct session *page = sys_pages(4096);
    if (!page) return;
    if (sys3(__NR_madvise, page, 4096, MADV_WIPE_ON_FORK) < 0) {
        sys2(__NR_munmap, page, 4096);
        return;
    }
    page->process = sys0(__NR_getpid);
    session = page;
    /* With --rescue stdio's calls are not gathered: after a kill between the gathering and the stream's own
       update, weir would write the bytes twice. */
    if (!config.exec_flush) glibc_stdio_start();
}

void gather_disable(void) {
    disabled = 1;
    if (session->prepared) dispatch_disable();
}

/* Returns false in a child of vfork(2) or clone(2) that shares the memory of its parent: a session that it prepared would be
   the parent's too. The kernel zeroes `process` in a forked child. */
static int owns_memory(void) {
    struct session *s = session;
    long pid = sys0(__NR_getpid);
    if (!s->process && sys5(__NR_kcmp, pid, sys0(__NR_getppid), KCMP_VM, 0, 0) != 0) s->process = pid;
    return s->process == pid;
}

/* Begins a session. Returns false if SIGSYS is blocked or has another handler, if the process has several threads, in a
   child that shares its parent's memory, or if weir has closed the region. */
static int begin_session(uint64_t mask) {
    struct session *s = session;
    if (s->selector) return !s->region->closed;
    if (mask & SIG_SYS_BIT || !threads_single()) return 0;
    if (!s->prepared && !owns_memory()) return 0;
    if ((!s->prepared && !session_setup()) || s->region->closed) {
        disabled = 1;
        return 0;
    }
    if (s->thread != sys0(__NR_gettid) || !dispatch_owns_sigsys()) return 0;
    s->targets_count = 0;
    s->readable_fd = 0;
    s->source_fd = 0;
    s->writes_before = (uint32_t)(s->region->head >> 32);
    s->reads_before = (uint32_t)(s->region->in_used >> 32);
    s->out.kind = s->in.kind = KIND_OTHER;
    gather_forget_pages();
    s->selector = 1;
    return 1;
}

int gather_end(const uint64_t *mask, int patient) {
    struct session *s = session;
    if (!s->selector && !region_pending(s->region)) return 1;
    if (!region_flush(mask, patient)) return 0;
    if (!s->region) return 1; /* a child that a handler has forked: its session is wiped */
    region_return_read_ahead();
    s->fast_write_max = 0;
    s->selector = 0;
    uint32_t out = (uint32_t)(s->region->head >> 32) - s->writes_before;
    uint32_t in = (uint32_t)(s->region->in_used >> 32) - s->reads_before;
    s->extra_warmup = out + in >= WORTHWHILE_CALLS ? 0 : s->extra_warmup * 2 + WARMUP_CALLS;
    if (s->extra_warmup > MAX_EXTRA_WARMUP) s->extra_warmup = MAX_EXTRA_WARMUP;
    s->direct_calls = 0;
    return 1;
}

void gather_end_now(void) {
    if (!session->selector && !region_pending(session->region)) return;
    uint64_t mask = signals_mask(~UINT64_C(0));
    gather_end(&mask, 1);
    signals_mask(mask);
}

/* Ends the session. Sets *done to NOT_DONE if the program must make the call itself, and to DONE if the call returns the
   result: EINTR, or the error of an earlier write. */
static long end_and_decline(int fd, const uint64_t *mask, int *done) {
    int ended = gather_end(mask, 0), late = ended ? gather_take_late_error(fd) : 0;
    *done = !ended || late ? DONE : NOT_DONE;
    return ended ? -late : -EINTR;
}

/* Returns how many bytes are gathered before the first flush. In a pipe they fill up the last page, so that as many bytes fit as without
   gathering. */
static uint32_t first_room(const struct target *target, size_t n) {
    int unread = 0;
    if (target->kind != KIND_PIPE || sys3(__NR_ioctl, target->fd, FIONREAD, &unread) < 0) return target->room;
    uint32_t room = target->room - (uint32_t)unread % target->room;
    return room < n ? target->room : room;
}

static void set_output(const struct target *target, size_t n) {
    struct session *s = session;
    s->out = *target;
    s->region->out_fd = s->out_fd = target->fd;
    s->region->out_limit = target->limit;
    s->out_room = first_room(target, n);
    s->fast_write_max = config.order ? 0 : MAX_CALL_BYTES; /* each call must flush stdio first */
}

/* Gathers a write. Only one descriptor has gathered bytes at a time, which keeps the order between files. */
static long gather_bytes(int fd, const void *from, size_t n, const uint64_t *mask, int *done) {
    struct session *s = session;
    for (;;) {
        if (n - 1 >= MAX_CALL_BYTES || s->in_fast_path || !begin_session(*mask)) return end_and_decline(fd, mask, done);
        if (!pages_readable(&s->readable, from, n)) return end_and_decline(fd, mask, done);
        struct target *target = target_of(fd);
        if (!target || target->kind == KIND_OTHER || target->kind == KIND_SOURCE) return end_and_decline(fd, mask, done);
        if (target->access == O_RDONLY) return end_and_decline(fd, mask, done);
        int attached = s->out.kind != KIND_OTHER && s->out_fd == fd;
        if (attached && (uint32_t)s->region->head + n <= s->out_room) break;
        *done = DONE;
        if (!region_flush(mask, 0)) return -EINTR;
        if (gather_has_late_error(fd)) return -gather_take_late_error(fd);
        s->out_room = s->out.room;
        if (!s->selector || attached) continue; /* a handler ended the session during the wait */
        if (target_same(target, &s->in)) region_return_read_ahead(), s->in.kind = KIND_OTHER;
        set_output(target, n);
    }
    struct weir_region *region = s->region;
    /* Without room the program's own call blocks. */
    if (!(uint32_t)region->head && !region_has_room(&s->out)) return end_and_decline(fd, mask, done);
    text_put(region->out + (uint32_t)region->head, from, n);
    region->head += WEIR_CALL_UNIT + n;
    if (unlikely(region->closed)) gather_end(mask, 1);
    *done = DONE;
    return (long)n;
}

/* Handles a read of a pipe, terminal or socket, which takes no bytes back, so nothing is read ahead. While it has
   bytes, a read does not block and gathered bytes stay. */
static long read_available(int fd, size_t n, const uint64_t *mask, int *done) {
    struct session *s = session;
    int readable = 0;
    if (s->readable_fd != fd + 1 || s->readable_bytes < (int64_t)n) {
        s->readable_bytes = sys3(__NR_ioctl, fd, FIONREAD, &readable) == 0 ? readable : 0;
        s->readable_fd = fd + 1;
    }
    if (s->readable_bytes < (int64_t)n || (s->in.kind == KIND_FILE && s->fast_read_max))
        return end_and_decline(fd, mask, done);
    s->readable_bytes -= (int64_t)n;
    *done = DONE_RAW;
    return 0;
}

/* Reads a file ahead, and returns the first n bytes. */
static long read_file_ahead(int fd, void *to, size_t n, struct target *target, const uint64_t *mask) {
    struct session *s = session;
    struct weir_region *region = s->region;
    int used_up = region->in_length == (uint32_t)region->in_used;
    if (s->fast_read_max && s->in_fd == fd && used_up && s->read_ahead_bytes < MAX_READ_AHEAD) s->read_ahead_bytes *= 4;
    if (target_same(target, &s->out)) {
        if (!region_flush(mask, 0)) return -EINTR;
        s->fast_write_max = 0;
        s->out.kind = KIND_OTHER;
    }
    long got = region_read_ahead(fd, s->read_ahead_bytes > n ? s->read_ahead_bytes : (uint32_t)n);
    s->fast_read_max = 0;
    if (got <= 0) return got;
    if ((size_t)got < n) n = (size_t)got;
    text_put(to, s->in_bytes, n);
    region->in_used += WEIR_CALL_UNIT + n;
    s->in = *target;
    s->in_fd = fd;
    s->fast_read_max = MAX_CALL_BYTES;
    return (long)n;
}

/* Serves a read that the fast path does not take. */
static long serve_read(int fd, void *to, size_t n, const uint64_t *mask, int *done) {
    struct session *s = session;
    if (n - 1 >= MAX_CALL_BYTES || s->in_fast_path || !begin_session(*mask)) return end_and_decline(fd, mask, done);
    struct target *target = target_of(fd);
    if (!target || target->kind == KIND_OTHER || target->access == O_WRONLY) return end_and_decline(fd, mask, done);
    if (target->kind == KIND_NULL || target->kind == KIND_SOURCE) {
        s->source_fd = fd + 1;
        *done = DONE_RAW;
        return 0;
    }
    if (s->no_read_ahead) return end_and_decline(fd, mask, done);
    if (target->kind != KIND_FILE) return read_available(fd, n, mask, done);
    if (!pages_writable(&s->writable, to, n)) return end_and_decline(fd, mask, done);
    *done = DONE;
    return read_file_ahead(fd, to, n, target, mask);
}

/* Counts a tiny call outside a session. Returns true if it should be gathered: in a session, or after enough such calls. */
static int count_and_decide(size_t n) {
    struct session *s = session;
    if (disabled || s == &none) return 0;
    if (s->selector) return 1;
    /* In a signal handler that runs while the session waits for room. */
    if (s->wait_frame && (char *)__builtin_frame_address(0) < (char *)s->wait_frame) return 0;
    return n - 1 < MAX_CALL_BYTES && ++s->direct_calls > WARMUP_CALLS + s->extra_warmup;
}

int gather_wants_parts(void) {
    if (!threads_single() || !count_and_decide(1)) return 0;
    if (!session->selector) pages_forget(&session->readable);
    return 1;
}

long gather_write(int fd, const void *from, size_t n, int *done) {
    int late = gather_take_late_error(fd);
    *done = late ? DONE : NOT_DONE;
    if (late || !count_and_decide(n)) return -late;
    uint64_t mask = signals_mask(~UINT64_C(0));
    long kernel = gather_bytes(fd, from, n, &mask, done);
    signals_mask(mask);
    return kernel;
}

long gather_read(int fd, void *to, size_t n, int *done) {
    *done = NOT_DONE;
    if (!count_and_decide(n)) return 0;
    uint64_t mask = signals_mask(~UINT64_C(0));
    long kernel = serve_read(fd, to, n, &mask, done);
    signals_mask(mask);
    return kernel;
}
#endif
