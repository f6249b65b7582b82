/*
 * Runs one sample and prints its figures as lines of "name value":
 *   sample METHOD WORKLOAD BYTES RECORD OUT [IN [BUFFER [SYNC [EVERY [MODE]]]]]
 * Workload, sync and mode are the numbers of job.h.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"

static uint64_t number(int count, char **arguments, int i)
{
    return i < count ? strtoull(arguments[i], NULL, 0) : 0;
}

static void print(const struct wb_result *result)
{
    static const char *const states[] = {"ok", "failed", "cannot"};
    printf("status %s\ncall %s\nerror %s\ntext %s\n", states[result->status], result->error_call,
           strerror(result->error_number), result->text);
    for (int i = 0; i < WB_CALL_KINDS; i++)
        if (result->calls[i].count)
            printf("calls.%s %" PRIu64 "\n", result->calls[i].name, result->calls[i].count);
    printf("kernel_reads %" PRIu64 "\nkernel_writes %" PRIu64 "\n", result->kernel_reads,
           result->kernel_writes);
    printf("bytes %" PRIu64 "\nrecords %" PRIu64 "\n", result->bytes_moved, result->records);
    printf("open_ns %" PRIu64 "\ntransfer_ns %" PRIu64 "\nsync_ns %" PRIu64 "\nclose_ns %" PRIu64 "\n",
           result->open_ns, result->transfer_ns, result->sync_ns, result->close_ns);
    printf("elapsed_ns %" PRIu64 "\ncpu_ns %" PRIu64 "\n", result->elapsed_ns, result->cpu_ns);
    printf("clock_read_ns %.2f\nempty_loop_ns %.2f\n", result->clock_read_ns, result->empty_loop_ns);
    printf("dirty_bytes %" PRIu64 "\nwriteback_bytes %" PRIu64 "\n", result->dirty_bytes,
           result->writeback_bytes);
}

int main(int count, char **arguments)
{
    if (count < 6) {
        fprintf(stderr, "usage: %s METHOD WORKLOAD BYTES RECORD OUT [IN [BUFFER [SYNC [EVERY [MODE]]]]]\n",
                arguments[0]);
        return 2;
    }
    const struct wb_job job = {
        .method = arguments[1],
        .workload = (uint32_t)number(count, arguments, 2),
        .bytes = number(count, arguments, 3),
        .record_bytes = number(count, arguments, 4),
        .out_path = arguments[5],
        .in_path = count > 6 ? arguments[6] : NULL,
        .buffer_bytes = number(count, arguments, 7),
        .sync = (uint32_t)number(count, arguments, 8),
        .sync_every_bytes = number(count, arguments, 9),
        .mode = (uint32_t)number(count, arguments, 10),
        .vector_records = 4,
        .queue_depth = 8,
        .advice = WB_ADVICE_NONE,
    };
    struct wb_result result;
    wb_measure(&job, &result);
    print(&result);
    return (int)result.status;
}
