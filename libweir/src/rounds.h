/* rounds.h: calls of fdatasync that threads share, see sync_round.c. */
#ifndef WEIR_ROUNDS_H
#define WEIR_ROUNDS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "../include/weir.h"

/* Two rounds take turns: while one is in the kernel the other forms. The third is of those who serve themselves
 * only. */
enum { WEIR__ALONE = 2, WEIR__ROUNDS };

/* All zero when nobody syncs. */
struct weir__rounds {
    uint32_t running;                     /* calls in the kernel */
    unsigned forming;                     /* which of the two */
    uint32_t followers[WEIR__ROUNDS];
    _Atomic uint32_t ended[WEIR__ROUNDS]; /* futexes of the followers */
};

/* All with the stream's lock, which following and ending let go for a while. Who was woken looks whether it was
 * served; if not, and no call runs, it leads. One that was served, or failed, passes on that it was the heir.
 * Who keeps the lock (`alone`) serves itself only. */
bool weir__round_runs(const weir_stream *s);
unsigned weir__round_follow(weir_stream *s);
void weir__round_pass_on(weir_stream *s, unsigned round);
unsigned weir__round_begin(weir_stream *s, bool alone);
void weir__round_end(weir_stream *s, unsigned round);

#endif /* WEIR_ROUNDS_H */
