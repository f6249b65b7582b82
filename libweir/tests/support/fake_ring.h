/* fake_ring.h: an io_uring with injected faults. It replaces the kernel's in weir__kernel; the writes themselves are
 * real. Unless `at_once` is set, a submitted write completes only when the stream waits for it or the test calls
 * fake_ring_complete, so memory that the stream reuses too early shows in the file. Every third wait returns EINTR. For one thread, and one ring at a time. */
#ifndef WEIR_TESTS_FAKE_RING_H
#define WEIR_TESTS_FAKE_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fake_ring {
    /* The fault: */
    uint64_t at;       /* number of the first write that it hits, from 1 on; 0: no fault */
    uint64_t times;    /* writes that it hits */
    int result;        /* a negative errno; 0; or a short count, cut to half of the bytes (rounded up) */
    bool refused;      /* io_uring_enter(2) fails with that errno, so that the write is never in flight */
    int setup_errno;   /* of io_uring_setup(2) */
    bool at_once;      /* writes complete during submission */
    /* The calls so far: */
    uint64_t started, hits, waits;
    bool in_flight;
    int open; /* rings */
};
extern struct fake_ring fake_ring;

void fake_ring_install(void);
void fake_ring_remove(void);
void fake_ring_reset(void);
/* Completes the write in flight, if there is one. */
void fake_ring_complete(void);

#endif /* WEIR_TESTS_FAKE_RING_H */
