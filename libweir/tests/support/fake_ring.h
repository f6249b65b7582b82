/* fake_ring.h: an io_uring that ends writes when and how it is told to. It takes the place of the kernel's in
 * weir__kernel; the writes themselves are real ones. A write that is in flight is done only when the stream
 * waits for it, or when it is told to: memory that was used again too early shows in the file. One thread,
 * one ring at a time. */
#ifndef WEIR_TESTS_FAKE_RING_H
#define WEIR_TESTS_FAKE_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fake_ring {
    /* What happens: */
    uint64_t at;       /* to the write with this number (the first is 1) and `times` in all; 0: to none */
    uint64_t times;
    int ends_with;     /* a negative errno; 0; or a count: it is cut to so many bytes, at most to half */
    bool refused;      /* by io_uring_enter(2), with that errno: it never was in flight */
    int no_ring;       /* errno of io_uring_setup(2) */
    bool at_once;      /* writes end while they are given */
    /* What has happened: */
    uint64_t started, hits, waits;
    bool in_flight;
    int open; /* rings */
};
extern struct fake_ring fake_ring;

void fake_ring_install(void);
void fake_ring_remove(void);
void fake_ring_reset(void);
void fake_ring_end_now(void); /* what is in flight */

#endif /* WEIR_TESTS_FAKE_RING_H */
