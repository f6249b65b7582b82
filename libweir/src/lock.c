/* lock.c: the slow path of a stream's lock: waiting for it, and waking waiters. */
#include "private.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { SPIN_COUNT = 64, WAIT_SLICE_MS = 50 };

/* from linux/membarrier.h, which older systems do not have */
enum { BARRIER_PRIVATE_EXPEDITED = 1 << 3, BARRIER_REGISTER_PRIVATE_EXPEDITED = 1 << 4 };

_Thread_local char weir__thread_mark;
_Atomic int weir__membarrier;

/* Registers the process for expedited membarrier(2). Fast in a process with one thread; with more the
 * kernel waits for some milliseconds. */
WEIR_COLD int weir__membarrier_register(void)
{
    int registered = syscall(SYS_membarrier, BARRIER_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0 ? 1 : -1;
    atomic_store(&weir__membarrier, registered);
    return registered;
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

/* Sleeps until the lock is released or for WAIT_SLICE_MS. Returns the time in ms, at least 1, so that a
 * wait for a contended lock also reaches its timeout. */
static unsigned futex_wait(struct weir__lock *lock)
{
    struct timespec slice = {0, WAIT_SLICE_MS * 1000000};
    uintptr_t owner = atomic_load(&lock->owner);
    if (!owner)
        return 1;
    long result = syscall(SYS_futex, futex_of(lock), FUTEX_WAIT_PRIVATE, (uint32_t)owner, &slice, NULL, 0);
    return result < 0 && errno == ETIMEDOUT ? WAIT_SLICE_MS : 1;
}

static bool spin(struct weir__lock *lock)
{
    for (int i = 0; i < SPIN_COUNT; i++)
        if (!atomic_load_explicit(&lock->owner, memory_order_relaxed) && weir__lock_acquire(lock))
            return true;
    return false;
}

/* Increments `waiters`, then issues a membarrier(2). After that either the owner's release sees `waiters`,
 * or this thread sees the lock free. */
WEIR_COLD bool weir__lock_wait(struct weir__lock *lock, const weir_stream *s, unsigned ms)
{
    bool acquired = spin(lock);
    if (!acquired) {
        atomic_fetch_add(&lock->waiters, 1);
        syscall(SYS_membarrier, BARRIER_PRIVATE_EXPEDITED, 0, 0);
        for (unsigned waited = 0; !(acquired = weir__lock_acquire(lock)) && waited <= ms;) {
            if ((acquired = is_orphaned(s)))
                break;
            unsigned slept = futex_wait(lock);
            waited += ms == UINT32_MAX ? 0 : slept;
        }
        atomic_fetch_sub(&lock->waiters, 1);
    }
    if (!acquired)
        return false;
    atomic_store_explicit(&lock->owner, weir__this_thread(), memory_order_relaxed);
    lock->depth = 0;
    return true;
}

WEIR_COLD int weir__lock_release_slow(struct weir__lock *lock, int result)
{
    int barrier = atomic_load_explicit(&weir__membarrier, memory_order_relaxed);
    if (barrier < 0 || (barrier == 0 && weir__membarrier_register() < 0))
        atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&lock->waiters, memory_order_relaxed))
        syscall(SYS_futex, futex_of(lock), FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    return result;
}
