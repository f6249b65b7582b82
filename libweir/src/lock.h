/* lock.h: the recursive lock of a stream. The uncontended path needs no function call: one atomic exchange
 * to lock and none to unlock. A waiter issues membarrier(2), which orders the owner's load of `waiters`
 * after its release, so the owner needs no fence. While the process has one thread, locking needs no
 * exchange either. */
#ifndef WEIR_LOCK_H
#define WEIR_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "../include/weir.h"

/* All zero if free. */
struct weir__lock {
    _Atomic uintptr_t owner; /* address of the owning thread's weir__thread_mark; 0: free */
    _Atomic uint32_t waiters; /* threads; each one with a time limit adds WEIR__URGENT */
    uint32_t depth;           /* recursive locks beyond the first */
};

/* Only exit, exec and fork limit their wait. Threads that release the lock let such a waiter go first: a
 * thread that writes in a loop would otherwise take the lock again before the waiter is awake. */
#define WEIR__URGENT 0x10000u

/* Data of a thread. Its address identifies the thread. */
struct weir__thread {
    _Atomic int tid;             /* 0 until weir__note_thread */
    _Atomic uintptr_t waits_for; /* the owner of the lock that the thread waits for, or 0 */
};

#if defined(__GNUC__)
/* In the initial TLS block, so that its address takes one instruction, also in the shared library. */
extern __attribute__((tls_model("initial-exec"))) _Thread_local struct weir__thread weir__thread_mark;
/* glibc's, from sys/single_threaded.h; other C libraries have no such variable. */
extern char __libc_single_threaded __attribute__((weak));
static inline bool weir__one_thread(void) { return &__libc_single_threaded && __libc_single_threaded; }
#else
extern _Thread_local struct weir__thread weir__thread_mark;
static inline bool weir__one_thread(void) { return false; }
#endif

/* 0: not registered yet; 1: waiters use membarrier(2); -1: not available, so each release needs a fence. */
extern _Atomic int weir__membarrier;

/* Waits at most `ms` milliseconds; UINT32_MAX: without a limit. `s` is the lock's stream, or NULL. Returns
 * false after a timeout; the thread then still counts as waiting, until weir__note_wait. */
bool weir__lock_wait(struct weir__lock *lock, const weir_stream *s, unsigned ms);
int weir__lock_release_slow(struct weir__lock *lock, int result);
int weir__membarrier_register(void);
/* Returns after every other thread of the process has executed a memory barrier. */
void weir__membarrier_all(void);
int64_t weir__now_ms(void); /* of CLOCK_MONOTONIC */

void weir__note_thread_slow(void);
/* Stores the ID of this thread, before a call that may sleep: see owner_wait.c. */
static inline void weir__note_thread(void)
{
    if (!WEIR_LIKELY(atomic_load_explicit(&weir__thread_mark.tid, memory_order_relaxed)))
        weir__note_thread_slow();
}

/* Stores the owner of the lock that this thread waits for; 0: it does not wait. */
void weir__note_wait(uintptr_t owner);

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

/* Releases a lock that is held once. Returns false if a waiter may need a wake-up: the caller then calls
 * weir__lock_release_slow, which returns its argument `result`. Split in two so that a caller can make the
 * second a tail call, which saves no registers. */
static inline bool weir__lock_release_fast(struct weir__lock *lock)
{
    atomic_store_explicit(&lock->owner, 0, memory_order_release);
    atomic_signal_fence(
        memory_order_seq_cst); /* keeps the compiler's order; membarrier(2) orders the processor */
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
