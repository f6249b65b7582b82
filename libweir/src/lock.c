/* lock.c: the slow path of a stream's lock: waiting for it, and waking waiters. */
#include "private.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { SPIN_COUNT = 64, WAIT_SLICE_MS = 50 };
/* A thread wakes up within 0.2 ms on an idle processor, and mostly within 20 ms on a loaded one. */
enum { GIVE_WAY_US = 200, GIVE_WAY_TIMES = 100 };

/* from linux/membarrier.h, which older systems do not have */
enum { BARRIER_PRIVATE_EXPEDITED = 1 << 3, BARRIER_REGISTER_PRIVATE_EXPEDITED = 1 << 4 };

_Thread_local struct weir__thread weir__thread_mark;
_Atomic int weir__membarrier;

/* Registers the process for expedited membarrier(2). Fast in a process with one thread; with more the
 * kernel waits for some milliseconds. */
WEIR_COLD int weir__membarrier_register(void)
{
    int registered = syscall(SYS_membarrier, BARRIER_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0 ? 1 : -1;
    atomic_store(&weir__membarrier, registered);
    return registered;
}

/* Without membarrier(2), in emulators and under seccomp filters, waits: a store is visible to other processors
 * after nanoseconds, and a preempted thread has executed a barrier. */
void weir__membarrier_all(void)
{
    struct timespec moment = {0, 2000000};
    int barrier = atomic_load_explicit(&weir__membarrier, memory_order_relaxed);
    if (barrier < 0 || (barrier == 0 && weir__membarrier_register() < 0) ||
        syscall(SYS_membarrier, BARRIER_PRIVATE_EXPEDITED, 0, 0) != 0)
        nanosleep(&moment, NULL);
}

/* Returns whether the process has one thread: the link count of this directory is 2 + threads. Without
 * /proc assumes one, as after fork(2). */
static bool is_single_threaded(void)
{
    struct stat threads;
    return stat("/proc/self/task", &threads) != 0 || threads.st_nlink <= 3;
}

/* Returns whether the lock was inherited locked. A child made by clone(2) has a copy of a WEIR_FORK_KEEP
 * stream; if a thread of the parent held its lock, no thread of the child can release it. (Other streams
 * are wiped.) If the child has several threads, the owner may be one of them, so the check requires a
 * single thread. */
static bool is_orphaned(const weir_stream *s)
{
    struct weir__config *config = s ? weir__config(s) : NULL;
    if (!config || config->on_fork != WEIR_FORK_KEEP || config->pid == (int)getpid() || !is_single_threaded())
        return false;
    config->pid = (int)getpid();
    return true;
}

/* Returns the half of the owner word that differs between threads: a futex has 32 bits. If two threads have
 * the same value there, or it is 0, a waiter only wakes up early. */
static uint32_t *futex_of(struct weir__lock *lock)
{
    const uint16_t one = 1;
    bool little = *(const char *)&one;
    return (uint32_t *)(void *)&lock->owner + (little ? 0 : sizeof lock->owner / sizeof(uint32_t) - 1);
}

int64_t weir__now_ms(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

/* Sleeps until the lock is released, at most `ms` milliseconds. May return early. */
static void futex_wait(struct weir__lock *lock, int64_t ms)
{
    struct timespec time = {0, (ms < WAIT_SLICE_MS ? ms : WAIT_SLICE_MS) * 1000000};
    uintptr_t owner = atomic_load(&lock->owner);
    weir__note_wait(owner);
    if (owner)
        syscall(SYS_futex, futex_of(lock), FUTEX_WAIT_PRIVATE, (uint32_t)owner, &time, NULL, 0);
}

static bool spin(struct weir__lock *lock)
{
    for (int i = 0; i < SPIN_COUNT; i++)
        if (!atomic_load_explicit(&lock->owner, memory_order_relaxed) && weir__lock_acquire(lock))
            return true;
    return false;
}

/* Releases a lock that the exiting thread still holds long after it should have ended the process: see
 * ending.c. */
static void release_expired(struct weir__lock *lock)
{
    struct weir__globals *globals = __atomic_load_n(&weir__globals, __ATOMIC_ACQUIRE);
    uintptr_t exiting = globals ? atomic_load(&globals->holder) : 0;
    if (!exiting || __atomic_load_n(&lock->depth, __ATOMIC_RELAXED) || weir__now_ms() <= globals->hold_end_ms)
        return;
    unsigned long sleeps = 0;
    if (weir__now_ms() > globals->hold_last_ms || !weir__thread_runs(exiting, &sleeps))
        atomic_compare_exchange_strong(&lock->owner, &exiting, 0);
}

/* Sleeps while the lock is free and an urgent waiter has not taken it yet, about 20 ms at most. */
static void give_way(struct weir__lock *lock)
{
    struct timespec time = {0, GIVE_WAY_US * 1000};
    for (int i = 0; i < GIVE_WAY_TIMES; i++) {
        uint32_t waiters = atomic_load(&lock->waiters);
        if (waiters < WEIR__URGENT || atomic_load(&lock->owner))
            return;
        syscall(SYS_futex, &lock->waiters, FUTEX_WAIT_PRIVATE, waiters, &time, NULL, 0);
    }
}

/* Returns false if the lock is not free until `end_ms`; INT64_MAX: waits without a limit. */
static bool wait_until(struct weir__lock *lock, const weir_stream *s, int64_t end_ms)
{
    while (!weir__lock_acquire(lock) && !is_orphaned(s)) {
        int64_t left = end_ms == INT64_MAX ? WAIT_SLICE_MS : end_ms - weir__now_ms();
        if (left <= 0)
            return false;
        futex_wait(lock, left);
        if (end_ms == INT64_MAX)
            give_way(lock);
        release_expired(lock);
    }
    return true;
}

/* Increments `waiters`, then issues a membarrier(2). After that either the owner's release sees `waiters`,
 * or this thread sees the lock free. */
WEIR_COLD bool weir__lock_wait(struct weir__lock *lock, const weir_stream *s, unsigned ms)
{
    if (!spin(lock)) {
        weir__note_thread();
        bool limited = ms != UINT32_MAX;
        uint32_t count = limited ? 1 + WEIR__URGENT : 1;
        atomic_fetch_add(&lock->waiters, count);
        syscall(SYS_membarrier, BARRIER_PRIVATE_EXPEDITED, 0, 0);
        bool acquired = wait_until(lock, s, limited ? weir__now_ms() + ms : INT64_MAX);
        atomic_fetch_sub(&lock->waiters, count);
        if (!acquired)
            return false;
        weir__note_wait(0);
    }
    atomic_store_explicit(&lock->owner, weir__this_thread(), memory_order_relaxed);
    lock->depth = 0;
    return true;
}

WEIR_COLD int weir__lock_release_slow(struct weir__lock *lock, int result)
{
    int barrier = atomic_load_explicit(&weir__membarrier, memory_order_relaxed);
    if (barrier < 0 || (barrier == 0 && weir__membarrier_register() < 0))
        atomic_thread_fence(memory_order_seq_cst);
    uint32_t waiters = atomic_load_explicit(&lock->waiters, memory_order_relaxed);
    if (!waiters)
        return result;
    bool urgent = waiters >= WEIR__URGENT;
    syscall(SYS_futex, futex_of(lock), FUTEX_WAKE_PRIVATE, urgent ? INT_MAX : 1, NULL, NULL, 0);
    if (urgent)
        give_way(lock);
    return result;
}
