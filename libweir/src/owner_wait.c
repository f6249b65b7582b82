/* owner_wait.c: how long exit, exec and fork wait for another thread's call. A thread that runs, waits for a processor or for
 * a device ends its call; ending the process before would tear its line. A thread that sleeps in a call may sleep for
 * ever: for a reader of a full pipe, or in a program's own code between weir_lock and weir_unlock. Therefore only the
 * time counts in which the thread sleeps and was not woken.
 *
 * A thread that waits for a stream's lock wakes up every few milliseconds, which is no progress. It notes the lock's owner,
 * and the owner is examined instead. Threads that wait for each other, or for the calling thread, count as asleep. */
#include "private.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    /* A thread with work to do gets a processor within a second also with 100 others; this ends the wait for one that
     * computes without end in a callback, or that a slow reader wakes again and again. */
    MAX_MS = 30000,
    STATUS_BYTES = 4096,
    MAX_WAITS = 64, /* a longer chain of threads, each waiting for the next, counts as a cycle */
};

WEIR_COLD void weir__note_thread_slow(void)
{
    atomic_store(&weir__thread_mark.tid, (int)syscall(SYS_gettid));
}

void weir__note_wait(uintptr_t owner) { atomic_store(&weir__thread_mark.waits_for, owner); }

/* Reads the mark of a thread. The memory of a thread that has ended may be unmapped, and a later thread may have it: then
 * the kernel, which copies the mark through a pipe, fails, or the mark is that thread's. Returns false if it cannot. */
static bool read_mark(uintptr_t thread, struct weir__thread *mark)
{
    int ends[2];
    if (!thread || pipe2(ends, O_CLOEXEC) != 0)
        return false;
    bool copied = syscall(SYS_write, ends[1], thread, sizeof *mark) == sizeof *mark &&
                  read(ends[0], mark, sizeof *mark) == sizeof *mark;
    close(ends[0]);
    close(ends[1]);
    return copied;
}

/* Returns the owner that the thread has noted, or 0. */
static uintptr_t waits_for(uintptr_t thread)
{
    struct weir__thread mark;
    return read_mark(thread, &mark) ? mark.waits_for : 0;
}

void weir__owner_wait_begin(struct weir__owner_wait *w)
{
    int64_t now = weir__now_ms();
    *w = (struct weir__owner_wait){
        .end_ms = now + WEIR__LOCK_TIMEOUT_MS, .last_end_ms = now + MAX_MS, .proceeded_ms = now, .checked_ms = now};
}

/* Reads the status of a thread. Returns false if there is no such thread, or no /proc. */
static bool read_status(int tid, char *to, size_t bytes)
{
    char path[48];
    snprintf(path, sizeof path, "/proc/self/task/%d/status", tid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t got = read(fd, to, bytes - 1);
    close(fd);
    if (got <= 0)
        return false;
    to[got] = '\0';
    return true;
}

/* Returns the number of voluntary context switches in the text of /proc/self/task/TID/status. */
static unsigned long sleeps_of(const char *status)
{
    static const char name[] = "\nvoluntary_ctxt_switches:";
    const char *found = strstr(status, name);
    return found ? strtoul(found + sizeof name - 1, NULL, 10) : 0;
}

bool weir__thread_runs(uintptr_t thread, unsigned long *sleeps)
{
    char status[STATUS_BYTES];
    struct weir__thread mark = {0};
    if (thread && !read_mark(thread, &mark))
        return false; /* it has ended */
    if (!mark.tid) /* in a call that does not sleep, or there is no thread */
        return true;
    if (!read_status(mark.tid, status, sizeof status))
        return false;
    const char *state = strstr(status, "\nState:\t");
    *sleeps = sleeps_of(status);
    /* running or ready, waiting for a device, stopped by a debugger or tracer */
    return state && state[8] && strchr("RDt", state[8]);
}

/* Follows the chain of lock owners from `thread`, each of which waits for the next. Returns the last one, which waits for no
 * lock; 0 if the chain is a cycle or leads to the calling thread. Sets *ready if a thread of it runs: it may have got its lock. */
static uintptr_t last_in_row(uintptr_t thread, bool *ready)
{
    for (int i = 0; i < MAX_WAITS; i++) {
        unsigned long sleeps;
        uintptr_t owner = waits_for(thread);
        if (!owner)
            return thread;
        *ready |= weir__thread_runs(thread, &sleeps);
        if (owner == weir__this_thread())
            return 0;
        thread = owner;
    }
    return 0;
}

bool weir__may_wait_on(struct weir__owner_wait *w, uintptr_t thread)
{
    int64_t now = weir__now_ms(), uncounted = 0;
    unsigned long sleeps = 0;
    bool ready = false;
    uintptr_t last = last_in_row(thread, &ready);
    bool in_a_circle = thread && !last;
    if (!in_a_circle && (weir__thread_runs(last, &sleeps) || last != w->thread || sleeps != w->sleeps)) {
        uncounted = now - w->proceeded_ms; /* its sleep before does not count either */
        w->proceeded_ms = now;
    } else if (ready) {
        uncounted = now - w->checked_ms;
        w->proceeded_ms += uncounted;
    }
    w->thread = last;
    w->sleeps = sleeps;
    w->checked_ms = now;
    int64_t end = w->end_ms + uncounted;
    w->end_ms = end < w->last_end_ms ? end : w->last_end_ms;
    return now < w->end_ms;
}

bool weir__lock_or_give_up(struct weir__lock *lock, struct weir__owner_wait *w)
{
    bool acquired;
    do
        acquired = weir__timedlock(lock, NULL, WEIR__SLICE_MS);
    while (!acquired && weir__may_wait_on(w, atomic_load(&lock->owner)));
    weir__note_wait(0);
    return acquired;
}
