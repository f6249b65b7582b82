/* sync_round.c: threads that ask for the device at the same time share one call of the kernel. While one call
 * runs the next round forms. At its end all whom it served are woken, and one of those who follow in the round
 * that forms, its heir; whoever comes first leads it, be it the heir or a thread that has just come, which need
 * not be waited for. Two words take turns, so that nobody wakes to find that his round is the next one. Those
 * who were served write their next records while the next call runs: two groups of half of the threads each. */
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
    /* Without the lock, which they all want at once: whoever finds it taken sleeps once more. */
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
