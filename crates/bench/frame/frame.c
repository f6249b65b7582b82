/* Runs one sample: prepare, then the timed span (open, transfer, sync, close), then the inspection. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "frame.h"

/* Resource usage at one end of the span. */
struct wb_instant {
    struct rusage usage;
    uint64_t cpu_ns;
};

static void take_instant(struct wb_instant *instant)
{
    getrusage(RUSAGE_SELF, &instant->usage);
    instant->cpu_ns = wb_clock(CLOCK_PROCESS_CPUTIME_ID);
}

static uint64_t microseconds(const struct timeval *from, const struct timeval *to)
{
    return (uint64_t)((to->tv_sec - from->tv_sec) * 1000000 + (to->tv_usec - from->tv_usec));
}

static void record_usage(struct wb_result *result, const struct wb_instant *from, const struct wb_instant *to)
{
    const struct rusage *a = &from->usage, *b = &to->usage;
    result->cpu_ns = to->cpu_ns - from->cpu_ns;
    result->user_us = microseconds(&a->ru_utime, &b->ru_utime);
    result->system_us = microseconds(&a->ru_stime, &b->ru_stime);
    result->voluntary_switches = (uint64_t)(b->ru_nvcsw - a->ru_nvcsw);
    result->involuntary_switches = (uint64_t)(b->ru_nivcsw - a->ru_nivcsw);
    result->minor_faults = (uint64_t)(b->ru_minflt - a->ru_minflt);
    result->major_faults = (uint64_t)(b->ru_majflt - a->ru_majflt);
}

static int transfer(struct wb_run *run)
{
    const struct wb_ops *ops = &run->method->ops;
    if (ops->transfer(run) != 0)
        return -1;
    /* The sync at the end must include the pending bytes, so they are written before it. */
    return run->job->sync == WB_SYNC_END && ops->flush ? ops->flush(run) : 0;
}

/* Runs and times the stages: four clock reads, five with a sync at the end. The times are recorded also when a
 * stage fails, and close always runs. */
static void timed(struct wb_run *run)
{
    const struct wb_ops *ops = &run->method->ops;
    struct wb_result *result = run->result;
    const uint64_t start = wb_clock(CLOCK_MONOTONIC);
    int rc = ops->open ? ops->open(run) : wb_open_files(run, 0, 0);
    const uint64_t opened = wb_clock(CLOCK_MONOTONIC);
    if (rc == 0)
        rc = transfer(run);
    const uint64_t transferred = wb_clock(CLOCK_MONOTONIC);
    uint64_t synced = transferred;
    if (rc == 0 && run->job->sync == WB_SYNC_END) {
        (void)wb_sync_once(run, run->job->bytes);
        synced = wb_clock(CLOCK_MONOTONIC);
        result->clock_reads++;
    }
    (void)(ops->close ? ops->close(run) : wb_close_files(run));
    const uint64_t end = wb_clock(CLOCK_MONOTONIC);

    result->open_ns = opened - start;
    result->transfer_ns = transferred - opened - result->sync_ns;
    result->sync_ns += synced - transferred;
    result->close_ns = end - synced;
    result->elapsed_ns = end - start;
    result->clock_reads += 3;
}

static void span(struct wb_run *run)
{
    struct wb_io_counters counters;
    struct wb_instant before, after;
    wb_io_start(&counters);
    take_instant(&before);
    timed(run);
    take_instant(&after);
    wb_io_end(&counters, run);
    record_usage(run->result, &before, &after);
    if (run->result->syncs > 0)
        wb_count(run, wb_sync_call(run->job->sync), run->result->syncs);
}

int wb_measure(const struct wb_job *job, struct wb_result *result)
{
    struct wb_run run = {.job = job, .result = result, .in = -1, .out = -1};
    /* A file size limit then gives EFBIG instead of killing the process. */
    signal(SIGXFSZ, SIG_IGN);
    memset(result, 0, sizeof *result);
    run.method = wb_method_named(job->method);
    if (wb_check(&run) != 0)
        return (int)result->status;
    const struct wb_ops *ops = &run.method->ops;
    wb_stat_input(&run);
    if (wb_prepare_record(&run) == 0 && (!ops->prepare || ops->prepare(&run) == 0)) {
        wb_measure_cost(result);
        span(&run);
        if (result->status == WB_OK)
            wb_read_output_cache(&run);
        if (result->status == WB_OK && ops->inspect)
            (void)ops->inspect(&run);
    }
    if (ops->release)
        ops->release(&run);
    free(run.record);
    return (int)result->status;
}
