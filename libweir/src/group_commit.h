/* rounds.h: calls of fdatasync that threads share, see sync_round.c. */
#ifndef WEIR_GROUP_COMMIT_H
#define WEIR_GROUP_COMMIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "../include/weir.h"

/* Two rounds take turns: while one is in the kernel the other forms. The third is of those who serve themselves
 * only. */
enum { WEIR__GROUP_SINGLE = 2, WEIR__GROUPS };

/* All zero when nobody syncs. */
struct weir__sync_groups {
    uint32_t running;                     /* calls in the kernel */
    unsigned forming;                     /* which of the two */
    uint32_t followers[WEIR__GROUPS];
    _Atomic uint32_t generation[WEIR__GROUPS]; /* futexes of the followers */
};

/* All with the stream's lock, which following and ending let go for a while. Who was woken looks whether it was
 * served; if not, and no call runs, it leads. One that was served, or failed, passes on that it was the heir.
 * Who keeps the lock (`alone`) serves itself only. */
bool weir__group_running(const weir_stream *s);
unsigned weir__group_follow(weir_stream *s);
void weir__group_wake_leader(weir_stream *s, unsigned group);
unsigned weir__group_begin(weir_stream *s, bool single);
void weir__group_end(weir_stream *s, unsigned group);

#endif /* WEIR_GROUP_COMMIT_H */
