/* arena.h: the memory that weir shares with the programs it runs, so that a kill loses nothing.

   weir makes a memfd, seals its size and names it in WEIR_RUN as arena=/proc/PID/fd/N. A process that begins to gather
   maps it and takes a slot: owners[i] goes from 0 to its pid in one step, or is its pid already after an exec. weir
   gives the slot back when the process has ended (Arena::drain in crates/control/src/coalesce). Without a free slot
   nothing is gathered.

   Writes. `head` is calls << 32 | bytes; only the owner stores it, after the bytes are there. `drained` of these
   bytes are already written to out_fd. Whoever writes bytes out holds `lock` (the owner when it must let others see
   them; weir's tick when they are too old), writes from `drained` and adds to it at once. The owner alone starts over:
   under the lock, head becomes (calls + 1, 0) and drained 0. So bytes between drained and head are those that
   write(2) has promised and the kernel has not seen yet: what weir writes out at a death.
   out_fd cannot come to mean another file meanwhile: every system call of the owner empties the region first.

   Reads. in_length bytes were read ahead from in_fd, a regular file, of which (low half of `in_used`) the program has
   got; the file's offset is behind all of them, at in_end (-1: not known yet). At a death weir sets the offset back.

   A kill between a system call and the store of its result. Reads and writes of the region are made by one piece of
   code (dispatch_x86_64.S in C clothes: weir_flight), whose last instruction adds the kernel's result to `drained` or
   in_length. flight_back and flight_done are its addresses: a process that died with its instruction pointer in
   [flight_back, flight_done) made the call, with the result still in its register.

   A lock held by a weir that has died is taken over; one held by a process that has died does not matter. */
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
#define WEIR_ONE_CALL (UINT64_C(1) << 32)
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
    volatile uint32_t lock; /* 0, or the pid of its holder */
    volatile int32_t out_fd;
    uint64_t flight_back, flight_done;
    volatile uint64_t in_used;   /* calls << 32 | bytes */
    volatile uint64_t in_length; /* the last field that a read in flight stores */
    volatile int64_t in_end;
    volatile int32_t in_fd;
    uint32_t out_limit; /* bytes that go out in one piece at most: PIPE_BUF for a pipe */
    char rest[WEIR_REGION_HEAD_BYTES - 72];
    char out[WEIR_OUT_BYTES];
};
_Static_assert(sizeof(struct weir_region) == WEIR_REGION_BYTES, "weir's arena.rs has the same layout");
#endif
