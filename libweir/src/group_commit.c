/* group_commit.c: threads that sync one stream at the same time share a call of fdatasync(2).
 *
 * While one call runs, threads that need a later one join the forming group as followers. The end of the
 * call wakes the followers that it covered, and one follower of the forming group. The first thread that
 * then finds no call running becomes the leader: the woken follower, or a thread that has just arrived. The
 * two groups use two futexes in turn, so a wake-up never reaches a follower of the next group. The threads
 * of a finished group write their next records while the next call runs; under load the threads split into
 * two groups of about half each. */
#include "private.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

static void wake(_Atomic uint32_t *word, int threads)
{
    atomic_fetch_add(word, 1);
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, threads, NULL, NULL, 0);
}

bool weir__group_running(const weir_stream *s) { return weir__state(s)->groups.running > 0; }

unsigned weir__group_follow(weir_stream *s)
{
    struct weir__state *state = weir__state(s);
    unsigned group = state->groups.forming;
    _Atomic uint32_t *word = &state->groups.generation[group];
    uint32_t value = atomic_load(word);
    state->groups.followers[group]++;
    weir__unlock(&state->lock);
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
    weir__lock(&state->lock, s);
    return group;
}

void weir__group_wake_leader(weir_stream *s, unsigned group)
{
    struct weir__sync_groups *groups = &weir__state(s)->groups;
    if (group == groups->forming && !groups->running && groups->followers[group])
        wake(&groups->generation[group], 1);
}

unsigned weir__group_begin(weir_stream *s, bool single)
{
    struct weir__sync_groups *groups = &weir__state(s)->groups;
    groups->running++;
    if (single)
        return WEIR__GROUP_SINGLE;
    unsigned group = groups->forming;
    groups->forming = !group;
    return group;
}

void weir__group_end(weir_stream *s, unsigned group)
{
    struct weir__state *state = weir__state(s);
    struct weir__sync_groups *groups = &state->groups;
    groups->running--;
    unsigned next = groups->forming;
    bool lead = !groups->running && groups->followers[next];
    bool served = groups->followers[group];
    groups->followers[group] = 0;
    if (!lead && !served)
        return;
    /* Wakes without holding the lock: all followers need it, and a thread that finds it locked sleeps
     * again. */
    bool release = state->lock.depth == 0;
    if (release)
        weir__unlock(&state->lock);
    if (lead)
        wake(&groups->generation[next], 1);
    if (served)
        wake(&groups->generation[group], INT_MAX);
    if (release)
        weir__lock(&state->lock, s);
}

void weir__group_call_begin(weir_stream *s) { atomic_fetch_add(&weir__state(s)->groups.calls, 1); }

void weir__group_call_end(weir_stream *s)
{
    _Atomic uint32_t *calls = &weir__state(s)->groups.calls;
    if (atomic_fetch_sub(calls, 1) == 1)
        syscall(SYS_futex, calls, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* No call can begin meanwhile, because this thread has the lock. */
void weir__group_wait_for_calls(weir_stream *s)
{
    _Atomic uint32_t *calls = &weir__state(s)->groups.calls;
    for (uint32_t running; (running = atomic_load(calls)) > 0;)
        syscall(SYS_futex, calls, FUTEX_WAIT_PRIVATE, running, NULL, NULL, 0);
}
