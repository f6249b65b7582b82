/* region.c: writes the bytes of a session, reads ahead, and moves the file's offset back over unread bytes. Signals are
   masked. */
#include "gather.h"

#if WEIR_HAS_DISPATCH
#include <asm/poll.h>

#include "dispatch.h"
#include "signals.h"

enum { ERR_INTR = -4, ERR_AGAIN = -11, ERR_SEARCH = -3, SLEEPS = 256 };

struct pause {
    long seconds, nanoseconds;
};

/* Takes the lock. weir's timer (Arena::tick in crates/control/src/coalesce) holds it for one write that does not block. A
   lock whose holder has died is released. */
void region_lock(struct weir_region *region) {
    uint32_t own = (uint32_t)sys0(__NR_getpid);
    for (int sleeps = 1;; sleeps++) {
        uint32_t holder = 0;
        if (__atomic_compare_exchange_n(&region->lock, &holder, own, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return;
        if (holder == own) return;
        struct pause moment = {0, 20000};
        sys2(__NR_nanosleep, &moment, 0);
        if (sleeps % SLEEPS == 0 && sys2(__NR_kill, holder, 0) == ERR_SEARCH)
            __atomic_compare_exchange_n(&region->lock, &holder, 0, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    }
}

void region_unlock(struct weir_region *region) { __atomic_store_n(&region->lock, 0, __ATOMIC_RELEASE); }

int region_has_room(const struct target *out) {
    struct pollfd wait = {out->fd, POLLOUT, 0};
    struct pause no_wait = {0, 0};
    return out->kind == KIND_FILE || out->kind == KIND_NULL || sys5(__NR_ppoll, &wait, 1, &no_wait, 0, 8) > 0;
}

/* Waits until a write would not block, with the program's signal mask. This is rare, because there was room when
   the first byte was gathered. The session is suspended meanwhile, so a handler's calls go to the kernel. Returns false
   if the wait failed, because a handler ran. */
static int wait_for_room(const uint64_t *mask) {
    struct session *s = session;
    struct pollfd wait = {s->out.fd, POLLOUT, 0};
    uint32_t fast_write_max = s->fast_write_max, fast_read_max = s->fast_read_max;
    if (region_has_room(&s->out)) return 1;
    s->wait_frame = __builtin_frame_address(0);
    s->fast_write_max = s->fast_read_max = 0;
    s->selector = 0;
    long ready = sys5(__NR_ppoll, &wait, 1, 0, mask, 8);
    if (s->wait_frame) { /* null in a child that a handler has forked */
        s->selector = 1;
        s->fast_write_max = fast_write_max;
        s->fast_read_max = fast_read_max;
    }
    s->wait_frame = NULL;
    gather_forget_pages(); /* a handler may have unmapped some */
    return ready >= 0;
}

static long write_piece(struct weir_region *region) {
    long done = 0;
    region_lock(region);
    uint64_t left = (uint32_t)region->head - region->drained;
    if (left > region->out_limit) left = region->out_limit;
    const char *from = region->out + region->drained;
    if (left) done = weir_counted_call(__NR_write, region->out_fd, from, left, &region->drained);
    region_unlock(region);
    return done;
}

/* Empties the region. If the process dies between the two stores, head is 0 and drained is not: nothing is pending. */
static void restart_region(struct weir_region *region) {
    if (!(uint32_t)region->head) return;
    region_lock(region);
    region->head = ((region->head >> 32) + 1) << 32;
    region->drained = 0;
    region_unlock(region);
}

int region_flush(const uint64_t *mask, int patient) {
    struct session *s = session;
    while (region_pending(s->region)) { /* a child that a handler forks has no region */
        if (!wait_for_room(mask)) {
            if (!patient && !signals_all_restart()) return 0;
            continue;
        }
        long done = write_piece(s->region);
        if (done < 0 && done != ERR_INTR && done != ERR_AGAIN) {
            gather_note_late_error((int)-done);
            break; /* as after any failed write, the bytes are lost and the program gets the error */
        }
    }
    /* A fast path that a signal has interrupted will append after `drained`: keep the region. */
    if (s->region && !s->in_fast_path) restart_region(s->region);
    return 1;
}

void region_return_read_ahead(void) {
    struct session *s = session;
    struct weir_region *region = s->region;
    s->fast_read_max = 0;
    if (!region || !region->in_length) return;
    int64_t unread = (int64_t)(region->in_length - (uint32_t)region->in_used);
    if (unread) {
        if (sys3(__NR_lseek, region->in_fd, 0, 1) == region->in_end)
            sys3(__NR_lseek, region->in_fd, region->in_end - unread, 0);
        else
            s->no_read_ahead = 1; /* another process reads at this offset: the unread bytes cannot be returned (README.md) */
    }
    region->in_length = 0;
    region->in_used = ((region->in_used >> 32) + 1) << 32;
}

long region_read_ahead(int fd, uint32_t want) {
    struct weir_region *region = session->region;
    region_return_read_ahead();
    region->in_used = ((region->in_used >> 32) + 1) << 32;
    region->in_end = -1;
    region->in_fd = fd;
    long bytes = weir_counted_call(__NR_read, fd, session->in_bytes, want, &region->in_length);
    if (bytes > 0) region->in_end = sys3(__NR_lseek, fd, 0, 1);
    return bytes;
}
#endif
