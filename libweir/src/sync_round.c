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

bool weir__round_runs(const weir_stream *s)
{
    return weir__hot(s)->rounds.running > 0;
}

unsigned weir__round_follow(weir_stream *s)
{
    struct weir__hot *hot = weir__hot(s);
    unsigned round = hot->rounds.forming;
    _Atomic uint32_t *word = &hot->rounds.ended[round];
    uint32_t value = atomic_load(word);
    hot->rounds.followers[round]++;
    weir__unlock(&hot->lock);
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
    weir__lock(&hot->lock, s);
    return round;
}

void weir__round_pass_on(weir_stream *s, unsigned round)
{
    struct weir__rounds *rounds = &weir__hot(s)->rounds;
    if (round == rounds->forming && !rounds->running && rounds->followers[round])
        wake(&rounds->ended[round], 1);
}

unsigned weir__round_begin(weir_stream *s, bool alone)
{
    struct weir__rounds *rounds = &weir__hot(s)->rounds;
    rounds->running++;
    if (alone)
        return WEIR__ALONE;
    unsigned round = rounds->forming;
    rounds->forming = !round;
    return round;
}

void weir__round_end(weir_stream *s, unsigned round)
{
    struct weir__hot *hot = weir__hot(s);
    struct weir__rounds *rounds = &hot->rounds;
    rounds->running--;
    unsigned next = rounds->forming;
    bool heir = !rounds->running && rounds->followers[next];
    bool served = rounds->followers[round];
    rounds->followers[round] = 0;
    if (!heir && !served)
        return;
    /* Without the lock, which they all want at once: whoever finds it taken sleeps once more. */
    bool release = hot->lock.depth == 0;
    if (release)
        weir__unlock(&hot->lock);
    if (heir)
        wake(&rounds->ended[next], 1);
    if (served)
        wake(&rounds->ended[round], INT_MAX);
    if (release)
        weir__lock(&hot->lock, s);
}
