/* Measures the cost of measuring: of one clock read, and of the frame in one pass of a loop. The result is the
 * minimum of a few short batches, because a disturbance only adds time. Takes less than 0.3 ms. */
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

/* Times the loop of the byte-by-byte methods without its calls. The other loops also shorten their last record,
 * which overlaps with the calls and adds no measurable time. */
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
            /* Replaces the calls: the compiler must assume that memory changed, and keeps the pass. */
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
