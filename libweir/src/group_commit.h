/* group_commit.h: groups of threads that share one fdatasync(2) call; see group_commit.c. */
#ifndef WEIR_GROUP_COMMIT_H
#define WEIR_GROUP_COMMIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "../include/weir.h"

/* Two groups alternate: while the call of one runs, the other one forms. WEIR__GROUP_SINGLE has no
 * followers; it is for a thread that cannot release the lock. */
enum { WEIR__GROUP_SINGLE = 2, WEIR__GROUPS };

/* All zero if no thread syncs. */
struct weir__sync_groups {
    uint32_t running; /* calls of fdatasync that are running */
    unsigned forming; /* index of the group that forms, 0 or 1 */
    uint32_t followers[WEIR__GROUPS];
    _Atomic uint32_t generation[WEIR__GROUPS]; /* futexes of the followers, incremented at the end */
    _Atomic uint32_t calls; /* of fdatasync whose failure is not stored yet; a futex */
};

/* All functions need the stream's lock; weir__group_follow and weir__group_end release it for a while. A
 * woken follower checks whether a sync has covered its bytes; if not, and no call is running, it becomes
 * the leader. A follower that needs no call any more calls weir__group_wake_leader, so that the forming
 * group gets another leader. */
bool weir__group_running(const weir_stream *s);
unsigned weir__group_follow(weir_stream *s);
void weir__group_wake_leader(weir_stream *s, unsigned group);
unsigned weir__group_begin(weir_stream *s, bool single);
void weir__group_end(weir_stream *s, unsigned group);
/* Enclose a call of fdatasync and the store of its failure. weir__group_call_end needs no lock. */
void weir__group_call_begin(weir_stream *s);
void weir__group_call_end(weir_stream *s);
/* Waits, with the lock, until the failures of all calls that have begun are stored. */
void weir__group_wait_for_calls(weir_stream *s);

#endif /* WEIR_GROUP_COMMIT_H */
