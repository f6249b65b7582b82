/* lock.c: waiting for a stream's lock, and waking who waits. */
#include "private.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { SPIN_COUNT = 64, WAIT_SLICE_MS = 50 };

/* linux/membarrier.h, which older systems lack */
enum { BARRIER_PRIVATE_EXPEDITED = 1 << 3, BARRIER_REGISTER_PRIVATE_EXPEDITED = 1 << 4 };

_Thread_local char weir__thread_mark;
_Atomic int weir__membarrier;

/* Quick in a process with one thread; with more the kernel waits some milliseconds. */
WEIR_COLD int weir__membarrier_register(void)
{
    int state = syscall(SYS_membarrier, BARRIER_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0 ? 1 : -1;
    atomic_store(&weir__membarrier, state);
    return state;
}

/* Links of this directory are 2 and the threads. Without /proc: as after a fork. */
static bool is_single_threaded(void)
{
    struct stat threads;
    return stat("/proc/self/task", &threads) != 0 || threads.st_nlink <= 3;
}

/* A child made by clone(2) has a copy of a lock that a thread of its parent held, and nobody will ever let
 * go of it; with other streams the kernel has wiped it. Where the child has threads, one of them holds it:
 * only a parent with one thread, which left nothing behind, may make a child that goes on to have more. */
static bool is_orphaned(const weir_stream *s)
{
    struct weir__config *config = s ? weir__config(s) : NULL;
    if (!config || config->on_fork != WEIR_FORK_KEEP || config->pid == (int)getpid() || !is_single_threaded())
        return false;
    config->pid = (int)getpid();
    return true;
}

/* The half of the holder's address in which threads differ: a futex has 32 bits. That two threads have the
 * same there, or that it is 0, only makes a thread that waits look again. */
static uint32_t *futex_of(struct weir__lock *lock)
{
    const uint16_t one = 1;
    bool little = *(const char *)&one;
    return (uint32_t *)(void *)&lock->owner + (little ? 0 : sizeof lock->owner / sizeof(uint32_t) - 1);
}

/* Returns about how many milliseconds it took: more than none, so that the wait for a busy lock ends too. */
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

/* After the barrier either the holder sees `waiters`, or its store of the free word is seen here. */
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
