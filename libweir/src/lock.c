/* lock.c: waiting for a stream's lock, and waking who waits. */
#include "private.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { SPINS = 64, SLICE_MS = 50 };

/* linux/membarrier.h, which older systems lack */
enum { BARRIER_PRIVATE_EXPEDITED = 1 << 3, BARRIER_REGISTER_PRIVATE_EXPEDITED = 1 << 4 };

_Thread_local char weir__thread_mark;
_Atomic int weir__barrier;

WEIR_COLD int weir__barrier_ask(void)
{
    int answer = syscall(SYS_membarrier, BARRIER_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0 ? 1 : -1;
    atomic_store(&weir__barrier, answer);
    return answer;
}

/* A child made by clone(2) has a copy of a lock that a thread of its parent held, and nobody will ever let
 * go of it; with other streams the kernel has wiped it. */
static bool left_behind(const weir_stream *s)
{
    struct weir__own *own = s ? weir__own(s) : NULL;
    if (!own || own->on_fork != WEIR_FORK_KEEP || own->pid == (int)getpid())
        return false;
    own->pid = (int)getpid();
    return true;
}

static void sleep_on(struct weir__lock *lock)
{
    struct timespec slice = {0, SLICE_MS * 1000000};
    syscall(SYS_futex, &lock->word, FUTEX_WAIT_PRIVATE, 1, &slice, NULL, 0);
}

static bool spin(struct weir__lock *lock)
{
    for (int i = 0; i < SPINS; i++)
        if (!atomic_load_explicit(&lock->word, memory_order_relaxed) && weir__lock_take(lock))
            return true;
    return false;
}

/* After the barrier either the holder sees `waiters`, or its store of the free word is seen here. */
WEIR_COLD bool weir__lock_wait(struct weir__lock *lock, const weir_stream *s, unsigned ms)
{
    bool got = spin(lock);
    if (!got) {
        atomic_fetch_add(&lock->waiters, 1);
        syscall(SYS_membarrier, BARRIER_PRIVATE_EXPEDITED, 0, 0);
        for (unsigned waited = 0; !(got = weir__lock_take(lock)) && waited <= ms;) {
            if ((got = left_behind(s)))
                break;
            sleep_on(lock);
            waited += ms == UINT32_MAX ? 0 : SLICE_MS;
        }
        atomic_fetch_sub(&lock->waiters, 1);
    }
    if (!got)
        return false;
    atomic_store_explicit(&lock->holder, (uintptr_t)&weir__thread_mark, memory_order_relaxed);
    lock->depth = 0;
    return true;
}

WEIR_COLD void weir__lock_wake(struct weir__lock *lock)
{
    syscall(SYS_futex, &lock->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
