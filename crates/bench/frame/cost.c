/* What measuring costs here: one clock read, and what the frame adds to one pass of a loop. The least of
 * a few short batches, since whatever disturbs a batch only adds to it. Under 0.3 ms in all. */
#include <stdatomic.h>

#include "frame.h"

enum { BATCHES = 5, CLOCK_READS = 64, PASSES = 8192 };

static double clock_read_ns(void)
{
    uint64_t least = UINT64_MAX;
    for (int batch = 0; batch < BATCHES; batch++) {
        const uint64_t start = wb_clock(CLOCK_MONOTONIC);
        for (int i = 1; i < CLOCK_READS; i++)
            (void)wb_clock(CLOCK_MONOTONIC);
        const uint64_t took = wb_clock(CLOCK_MONOTONIC) - start;
        least = took < least ? took : least;
    }
    return (double)least / CLOCK_READS;
}

/* The shape that the loops byte by byte have, without their calls: what a loop has besides, to cut its last
 * record, runs beside the calls and costs nothing that is seen. */
static double pass_ns(void)
{
    static struct wb_run scratch;
    uint64_t least = UINT64_MAX;
    scratch.next_sync = UINT64_MAX;
    for (int batch = 0; batch < BATCHES; batch++) {
        uint64_t moved = 0;
        const uint64_t start = wb_clock(CLOCK_MONOTONIC);
        while (moved < PASSES) {
            moved++;
            if (wb_passed(&scratch, moved) != 0)
                break;
            /* Stands for the calls: memory may have changed, so the pass stays as it is. */
            atomic_signal_fence(memory_order_seq_cst);
        }
        const uint64_t took = wb_clock(CLOCK_MONOTONIC) - start;
        least = took < least ? took : least;
    }
    return (double)least / PASSES;
}

void wb_measure_cost(struct wb_result *result)
{
    result->clock_read_ns = clock_read_ns();
    result->empty_loop_ns = pass_ns();
}
