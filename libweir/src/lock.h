/* lock.h: the recursive lock of a stream, taken and let go without a call when nobody is in the way. One
 * atomic exchange to take it and none to let go: who waits makes the holder's look at `waiters` see it by
 * membarrier(2), so the holder needs no fence. While the process has one thread, no exchange either. */
#ifndef WEIR_LOCK_H
#define WEIR_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "../include/weir.h"

/* All zero when free. */
struct weir__lock {
    _Atomic uintptr_t owner; /* the thread, as the address of something of its own; 0: free */
    _Atomic uint32_t waiters;
    uint32_t depth;           /* of nesting, beyond the first */
};

#if defined(__GNUC__)
/* One instruction to find it, also in the shared library: it is one byte. */
extern __attribute__((tls_model("initial-exec"))) _Thread_local char weir__thread_mark;
/* glibc's, sys/single_threaded.h; other C libraries do not say. */
extern char __libc_single_threaded __attribute__((weak));
static inline bool weir__one_thread(void) { return &__libc_single_threaded && __libc_single_threaded; }
#else
extern _Thread_local char weir__thread_mark;
static inline bool weir__one_thread(void) { return false; }
#endif

/* 0: not known yet; 1: who waits has membarrier(2); -1: it has not, so whoever lets go needs a fence. */
extern _Atomic int weir__membarrier;

/* Waits, `ms` at most (UINT_MAX: for ever). `s` may be NULL. */
bool weir__lock_wait(struct weir__lock *lock, const weir_stream *s, unsigned ms);
int weir__lock_release_slow(struct weir__lock *lock, int result);
int weir__membarrier_register(void);

static inline uintptr_t weir__this_thread(void) { return (uintptr_t)&weir__thread_mark; }

static inline bool weir__lock_acquire(struct weir__lock *lock)
{
    uintptr_t nobody = 0, self = weir__this_thread();
    if (weir__one_thread()) {
        if (atomic_load_explicit(&lock->owner, memory_order_relaxed))
            return false;
        atomic_store_explicit(&lock->owner, self, memory_order_relaxed);
        return true;
    }
    return atomic_compare_exchange_strong_explicit(&lock->owner, &nobody, self, memory_order_acquire,
                                                   memory_order_relaxed);
}

static inline bool weir__trylock(struct weir__lock *lock)
{
    if (atomic_load_explicit(&lock->owner, memory_order_relaxed) != weir__this_thread())
        return weir__lock_acquire(lock);
    lock->depth++;
    return true;
}

static inline bool weir__timedlock(struct weir__lock *lock, const weir_stream *s, unsigned ms)
{
    return WEIR_LIKELY(weir__trylock(lock)) || weir__lock_wait(lock, s, ms);
}

static inline void weir__lock(struct weir__lock *lock, const weir_stream *s)
{
    weir__timedlock(lock, s, UINT32_MAX);
}

/* Of a lock that this thread has once. False: weir__lock_release_slow must be called, which returns `result`. In two
 * parts, so that who does that as its last act saves no registers for it. */
static inline bool weir__lock_release_fast(struct weir__lock *lock)
{
    atomic_store_explicit(&lock->owner, 0, memory_order_release);
    atomic_signal_fence(memory_order_seq_cst); /* the compiler keeps the order; membarrier does the rest */
    return WEIR_LIKELY(atomic_load_explicit(&weir__membarrier, memory_order_relaxed) > 0) &&
           WEIR_LIKELY(!atomic_load_explicit(&lock->waiters, memory_order_relaxed));
}

static inline void weir__lock_release(struct weir__lock *lock)
{
    if (!weir__lock_release_fast(lock))
        weir__lock_release_slow(lock, 0);
}

static inline void weir__unlock(struct weir__lock *lock)
{
    if (lock->depth)
        lock->depth--;
    else
        weir__lock_release(lock);
}

#endif /* WEIR_LOCK_H */
