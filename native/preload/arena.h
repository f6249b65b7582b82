/* arena.h: the arena, memory that weir shares with the programs it runs, so that a kill loses no gathered byte.

   weir creates a memfd, seals its size, and names it in WEIR_RUN as arena=/proc/PID/fd/N. A process that begins to
   gather maps the arena and claims a slot: it changes owners[i] from 0 to its pid by one atomic step, or finds its
   pid there after an exec. weir frees the slot when the process has ended (Arena::drain in
   crates/control/src/coalesce). A process without a slot gathers nothing.

   Writes. `head` is calls << 32 | bytes. Only the owner stores it, after it has stored the bytes. The first `drained`
   of these bytes are written to out_fd. The process that writes bytes to out_fd holds `lock`, starts at `drained`,
   and adds to `drained` at once: the owner before a call that could reveal the delay, weir's tick when bytes are too
   old. Only the owner restarts the region: under the lock, head becomes (calls + 1, 0) and drained 0. So write(2) has
   accepted the bytes between drained and head, and the kernel has not seen them; weir writes them when the process
   dies. out_fd cannot refer to another file meanwhile, because every system call of the owner empties the region
   first.

   Reads. The owner has read in_length bytes ahead from in_fd, a regular file. The program has got the first
   (uint32_t)in_used of them. The file's offset is in_end, after all of them; -1: not known yet. When the process
   dies, weir moves the offset back.

   A kill between a system call and the store of its result. Only weir_counted_call (dispatch_x86_64.c) reads and
   writes for the region. Its last instruction adds the kernel's result to `drained` or in_length. A process that died
   with its instruction pointer in [unnoted_begin, unnoted_end) has made the call and not noted the result, which is
   still in the result register. The counter's address is in r8.

   The end of weir. weir stores `closed` in all regions, waits until every processor has made its earlier stores visible
   (membarrier(2)), and then writes what is pending, as its tick does. The owner loads `closed` after each store of head.
   If it loads 0, the load came before weir's store became visible, so the store of head came before the barrier, and weir
   writes the bytes. If it loads 1, it empties the region before its write(2) returns. If both do so, the lock and
   `drained` let one write each byte. A session whose region is closed ends with the next call that no fast path takes, and
   none begins. `closed` stays when a slot is freed or claimed.

   A process takes over the lock of a weir that has died. The lock of a process that has died has no effect. */
#ifndef WEIR_ARENA_H
#define WEIR_ARENA_H

#include <stdint.h>

#define WEIR_ARENA_MAGIC UINT64_C(0x31616e6572612e77)
enum {
    WEIR_ARENA_HEAD_BYTES = 4096,
    WEIR_ARENA_SLOTS = 256,
    WEIR_REGION_HEAD_BYTES = 4096,
    WEIR_OUT_BYTES = 65536,
    WEIR_REGION_BYTES = WEIR_REGION_HEAD_BYTES + WEIR_OUT_BYTES,
};
/* Adds one call to the high half of head or in_used. */
#define WEIR_CALL_UNIT (UINT64_C(1) << 32)
#define WEIR_ARENA_BYTES (WEIR_ARENA_HEAD_BYTES + (uint64_t)WEIR_ARENA_SLOTS * WEIR_REGION_BYTES)

struct weir_arena {
    uint64_t magic;
    uint32_t slots;
    uint32_t weir_pid;
    uint32_t owners[WEIR_ARENA_SLOTS];
};

struct weir_region {
    volatile uint64_t head;
    volatile uint64_t drained;
    volatile uint32_t lock; /* 0, or the pid of the holder */
    volatile int32_t out_fd;
    uint64_t unnoted_begin, unnoted_end;
    volatile uint64_t in_used;   /* calls << 32 | bytes */
    volatile uint64_t in_length; /* weir_counted_call adds the result of a read */
    volatile int64_t in_end;
    volatile int32_t in_fd;
    uint32_t out_limit; /* the most bytes of one write: PIPE_BUF for a pipe */
    volatile uint32_t late_errors; /* failed writes whose error the program has not got; not EPIPE */
    volatile int32_t late_error;   /* the error of the last one */
    volatile uint32_t closed;      /* 1: weir has ended, or is about to */
    char padding[WEIR_REGION_HEAD_BYTES - 84];
    char out[WEIR_OUT_BYTES];
};
_Static_assert(sizeof(struct weir_region) == WEIR_REGION_BYTES, "coalesce/layout.rs has the same layout");
#endif
