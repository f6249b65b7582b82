/* gather.c: sessions: when they begin, what they take, how they end. */
#include "gather.h"

#if WEIR_HAS_DISPATCH
#include <asm/ioctls.h>

#include "calls.h"
#include "dispatch.h"
#include "libc.h"
#include "signals.h"
#include "threads.h"

enum { MADV_WIPE_ON_FORK = 18, ERR_INTR = -4, WORTH = 8, PENALTY_MOST = 4096 };

static struct session none;
struct session *session = &none;
static int never;

void gather_start(void) {
    if (config.coalesce == COALESCE_OFF) return;
    struct session *fresh = sys_pages(4096);
    if (!fresh) return;
    if (sys3(__NR_madvise, fresh, 4096, MADV_WIPE_ON_FORK) < 0) {
        sys2(__NR_munmap, fresh, 4096);
        return;
    }
    session = fresh;
    /* --rescue: at a kill between the gathering and the stream's own note of it, weir would write these bytes twice. */
    if (!config.exec_flush) jumps_start();
}

void gather_never(void) {
    never = 1;
    if (session->prepared) dispatch_disable();
}

/* A vfork's child and a bare clone share this memory, but are not `task`. */
static int begin(uint64_t mask) {
    struct session *s = session;
    if (s->selector) return 1;
    if (mask & SIG_SYS_BIT || !threads_one()) return 0;
    if (!s->prepared && !prepare()) {
        never = 1;
        return 0;
    }
    if (s->task != sys0(__NR_gettid) || !dispatch_holds()) return 0;
    s->targets_count = 0;
    s->credit_fd = 0;
    s->source_fd = 0;
    s->first_out = (uint32_t)(s->region->head >> 32);
    s->first_in = (uint32_t)(s->region->in_used >> 32);
    s->out.kind = s->in.kind = KIND_OTHER;
    s->selector = 1;
    return 1;
}

int gather_end(const uint64_t *mask, int patient) {
    struct session *s = session;
    if (!s->selector && !region_pending(s->region)) return 1;
    if (!region_flush(mask, patient)) return 0;
    region_give_back();
    s->out_small = 0;
    s->selector = 0;
    uint32_t out = (uint32_t)(s->region->head >> 32) - s->first_out;
    uint32_t in = (uint32_t)(s->region->in_used >> 32) - s->first_in;
    s->penalty = out + in >= WORTH ? 0 : s->penalty * 2 + WARM;
    if (s->penalty > PENALTY_MOST) s->penalty = PENALTY_MOST;
    s->calls = 0;
    return 1;
}

int gather_late_error(int fd) {
    if (session->failed_fd != fd + 1) return 0;
    session->failed_fd = 0;
    return session->failed;
}

void gather_settle(void) {
    if (!session->selector && !region_pending(session->region)) return;
    uint64_t mask = signals_mask(~UINT64_C(0));
    gather_end(&mask, 1);
    signals_mask(mask);
}

/* The program makes the call itself, with nothing held. */
static long leave(int fd, const uint64_t *mask, int *done) {
    int ended = gather_end(mask, 0), late = ended ? gather_late_error(fd) : 0;
    *done = !ended || late ? DONE : DONE_NOT;
    return ended ? -late : ERR_INTR;
}

/* A pipe holds pages: the first piece fills the last one up, so that as much fits as without gathering. */
static uint32_t first_room(const struct target *target, size_t n) {
    int there = 0;
    if (target->kind != KIND_PIPE || sys3(__NR_ioctl, target->fd, FIONREAD, &there) < 0) return target->room;
    uint32_t room = target->room - (uint32_t)there % target->room;
    return room < n ? target->room : room;
}

static void attach_out(const struct target *target, size_t n) {
    struct session *s = session;
    s->out = *target;
    s->region->out_fd = s->out_fd = target->fd;
    s->region->out_limit = target->limit;
    s->out_room = first_room(target, n);
    s->out_small = config.order ? 0 : SMALL; /* stdio is looked at before each call */
}

/* One descriptor at a time: what another one gets later must not be seen earlier. */
static long append(int fd, const void *from, size_t n, const uint64_t *mask, int *done) {
    struct session *s = session;
    for (;;) {
        if (n - 1 >= SMALL || s->busy || !begin(*mask)) return leave(fd, mask, done);
        struct target *target = target_of(fd);
        if (!target || target->kind == KIND_OTHER || target->kind == KIND_SOURCE) return leave(fd, mask, done);
        if (target->access == O_RDONLY) return leave(fd, mask, done);
        int here = s->out.kind != KIND_OTHER && s->out_fd == fd;
        if (here && (uint32_t)s->region->head + n <= s->out_room) break;
        *done = DONE;
        if (!region_flush(mask, 0)) return ERR_INTR;
        if (s->failed_fd == fd + 1) return -gather_late_error(fd);
        s->out_room = s->out.room;
        if (!s->selector || here) continue; /* a handler ended the session while it waited */
        if (target_same(target, &s->in)) region_give_back(), s->in.kind = KIND_OTHER;
        attach_out(target, n);
    }
    struct weir_region *region = s->region;
    if (!(uint32_t)region->head && !region_has_room(&s->out)) return leave(fd, mask, done); /* it blocks by itself */
    text_put(region->out + (uint32_t)region->head, from, n);
    region->head += WEIR_ONE_CALL + n;
    *done = DONE;
    return (long)n;
}

/* Nothing is read ahead where it cannot be given back; but while there are bytes, reading them does not block, so
   gathered output can wait. */
static long pass_read(int fd, size_t n, const uint64_t *mask, int *done) {
    struct session *s = session;
    int there = 0;
    if (s->credit_fd != fd + 1 || s->credit < (int64_t)n) {
        s->credit = sys3(__NR_ioctl, fd, FIONREAD, &there) == 0 ? there : 0;
        s->credit_fd = fd + 1;
    }
    if (s->credit < (int64_t)n || (s->in.kind == KIND_FILE && s->in_small)) return leave(fd, mask, done);
    s->credit -= (int64_t)n;
    *done = DONE_RAW;
    return 0;
}

static long fill(int fd, void *to, size_t n, struct target *target, const uint64_t *mask) {
    struct session *s = session;
    struct weir_region *region = s->region;
    if (s->in_small && s->in_fd == fd && region->in_length == (uint32_t)region->in_used && s->in_want < IN_BYTES)
        s->in_want *= 4;
    if (target_same(target, &s->out)) {
        if (!region_flush(mask, 0)) return ERR_INTR;
        s->out_small = 0;
        s->out.kind = KIND_OTHER;
    }
    long got = region_read_ahead(fd, s->in_want > n ? s->in_want : (uint32_t)n);
    s->in_small = 0;
    if (got <= 0) return got;
    if ((size_t)got < n) n = (size_t)got;
    text_put(to, s->in_bytes, n);
    region->in_used += WEIR_ONE_CALL + n;
    s->in = *target;
    s->in_fd = fd;
    s->in_small = SMALL;
    return (long)n;
}

static long take(int fd, void *to, size_t n, const uint64_t *mask, int *done) {
    struct session *s = session;
    if (n - 1 >= SMALL || s->busy || !begin(*mask)) return leave(fd, mask, done);
    struct target *target = target_of(fd);
    if (!target || target->kind == KIND_OTHER || target->access == O_WRONLY) return leave(fd, mask, done);
    if (target->kind == KIND_NULL || target->kind == KIND_SOURCE) {
        s->source_fd = fd + 1;
        *done = DONE_RAW;
        return 0;
    }
    if (s->no_reading) return leave(fd, mask, done);
    if (target->kind != KIND_FILE) return pass_read(fd, n, mask, done);
    *done = DONE;
    return fill(fd, to, n, target, mask);
}

/* False while it is better to let tiny calls through; without a session that is nearly all that is ever asked. */
static int worth_it(size_t n) {
    struct session *s = session;
    if (never || s == &none) return 0;
    if (s->selector) return 1;
    if (s->waiting && (char *)__builtin_frame_address(0) < (char *)s->waiting) return 0;
    return n - 1 < SMALL && ++s->calls > WARM + s->penalty;
}

long gather_write(int fd, const void *from, size_t n, int *done) {
    int late = gather_late_error(fd);
    *done = late ? DONE : DONE_NOT;
    if (late || !worth_it(n)) return -late;
    uint64_t mask = signals_mask(~UINT64_C(0));
    long kernel = append(fd, from, n, &mask, done);
    signals_mask(mask);
    return kernel;
}

long gather_read(int fd, void *to, size_t n, int *done) {
    *done = DONE_NOT;
    if (!worth_it(n)) return 0;
    uint64_t mask = signals_mask(~UINT64_C(0));
    long kernel = take(fd, to, n, &mask, done);
    signals_mask(mask);
    return kernel;
}
#endif
