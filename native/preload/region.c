/* region.c: the bytes of a session: out to the kernel, read ahead, and given back. Signals are masked here. */
#include "gather.h"

#if WEIR_HAS_DISPATCH
#include <asm/poll.h>

#include "dispatch.h"
#include "signals.h"

enum { ERR_INTR = -4, ERR_AGAIN = -11, ERR_SEARCH = -3, SPINS = 256 };

struct pause {
    long seconds, nanoseconds;
};

/* weir's tick holds the lock for one write that does not block. */
static void lock(struct weir_region *region, uint32_t own) {
    for (int spins = 1;; spins++) {
        uint32_t holder = 0;
        if (__atomic_compare_exchange_n(&region->lock, &holder, own, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return;
        struct pause little = {0, 20000};
        sys2(__NR_nanosleep, &little, 0);
        if (spins % SPINS == 0 && sys2(__NR_kill, holder, 0) == ERR_SEARCH)
            __atomic_compare_exchange_n(&region->lock, &holder, 0, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    }
}

static void unlock(struct weir_region *region) { __atomic_store_n(&region->lock, 0, __ATOMIC_RELEASE); }

int region_has_room(const struct target *out) {
    struct pollfd wait = {out->fd, POLLOUT, 0};
    struct pause at_once = {0, 0};
    return out->kind == KIND_FILE || out->kind == KIND_NULL || sys5(__NR_ppoll, &wait, 1, &at_once, 0, 8) > 0;
}

/* Waits until a piece can go out without blocking, with the program's own signal mask; seldom: there was room when the
   first byte was gathered. The session rests meanwhile: to a handler it looks as if the blocked write had not been
   made. False if a handler ran. */
static int wait_for_room(const uint64_t *mask) {
    struct session *s = session;
    struct pollfd wait = {s->out.fd, POLLOUT, 0};
    uint32_t out_small = s->out_small, in_small = s->in_small;
    if (region_has_room(&s->out)) return 1;
    s->waiting = __builtin_frame_address(0);
    s->out_small = s->in_small = 0;
    s->selector = 0;
    long ready = sys5(__NR_ppoll, &wait, 1, 0, mask, 8);
    if (s->waiting) { /* else this is a child that a handler forked */
        s->selector = 1;
        s->out_small = out_small;
        s->in_small = in_small;
    }
    s->waiting = NULL;
    return ready >= 0;
}

static long write_piece(struct weir_region *region) {
    long done = 0;
    lock(region, (uint32_t)sys0(__NR_getpid));
    uint64_t left = (uint32_t)region->head - region->drained;
    if (left > region->out_limit) left = region->out_limit;
    if (left) done = weir_flight(__NR_write, region->out_fd, region->out + region->drained, left, &region->drained);
    unlock(region);
    return done;
}

/* The order of the two stores counts at a kill: a head of 0 with bytes drained means nothing is pending. */
static void start_over(struct weir_region *region) {
    if (!(uint32_t)region->head) return;
    lock(region, (uint32_t)sys0(__NR_getpid));
    region->head = ((region->head >> 32) + 1) << 32;
    region->drained = 0;
    unlock(region);
}

int region_flush(const uint64_t *mask, int patient) {
    struct session *s = session;
    while (region_pending(s->region)) { /* asked again each time: a handler's child has no region */
        if (!wait_for_room(mask)) {
            if (!patient && !signals_restart()) return 0;
            continue;
        }
        long done = write_piece(s->region);
        if (done < 0 && done != ERR_INTR && done != ERR_AGAIN) {
            s->failed_fd = s->out.fd + 1;
            s->failed = (int)-done;
            break; /* as with any write that fails: these bytes are lost, and the program is told */
        }
    }
    if (s->region && !s->busy) start_over(s->region); /* busy: the interrupted call still stores behind `drained` */
    return 1;
}

void region_give_back(void) {
    struct session *s = session;
    struct weir_region *region = s->region;
    s->in_small = 0;
    if (!region || !region->in_length) return;
    int64_t unread = (int64_t)(region->in_length - (uint32_t)region->in_used);
    if (unread) {
        if (sys3(__NR_lseek, region->in_fd, 0, 1) == region->in_end)
            sys3(__NR_lseek, region->in_fd, region->in_end - unread, 0);
        else
            s->no_reading = 1; /* others use this offset at the same time */
    }
    region->in_length = 0;
    region->in_used = ((region->in_used >> 32) + 1) << 32;
}

long region_read_ahead(int fd, uint32_t want) {
    struct weir_region *region = session->region;
    region_give_back();
    region->in_used = ((region->in_used >> 32) + 1) << 32;
    region->in_end = -1;
    region->in_fd = fd;
    long got = weir_flight(__NR_read, fd, session->in_bytes, want, &region->in_length);
    if (got > 0) region->in_end = sys3(__NR_lseek, fd, 0, 1);
    return got;
}
#endif
