/* Validates a job. An invalid field is EINVAL with the field's name as the call; a workload or policy that the
 * method does not have is wb_cannot() with the method's reason. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>

#include "frame.h"

static bool syncs_every(uint32_t sync)
{
    return sync == WB_SYNC_FSYNC || sync == WB_SYNC_FDATASYNC || sync == WB_SYNC_RANGE;
}

/* Returns the name of the first invalid field, or NULL. */
static const char *wrong_field(const struct wb_job *job, unsigned options)
{
    const bool reads = job->workload != WB_WRITE && job->workload != WB_LOG;
    if (job->workload >= WB_WORKLOADS)
        return "workload";
    if (job->sync >= WB_SYNCS)
        return "sync";
    if (job->mode > WB_MODE_FULL)
        return "mode";
    if (reads && !job->in_path)
        return "in_path";
    if (job->workload != WB_READ && !job->out_path)
        return "out_path";
    if (job->bytes > INT64_MAX)
        return "bytes";
    if (job->record_bytes < 1 || job->record_bytes > UINT64_C(1) << 30)
        return "record_bytes"; /* one call of Linux moves at most 2 GiB less a page */
    if (syncs_every(job->sync) && job->sync_every_bytes < 1)
        return "sync_every_bytes";
    if ((options & WB_HAS_VECTOR) && (job->vector_records < 1 || job->vector_records > IOV_MAX))
        return "vector_records";
    if ((options & WB_HAS_QUEUE) && (job->queue_depth < 1 || job->queue_depth > 4096))
        return "queue_depth";
    return NULL;
}

int wb_check(struct wb_run *run)
{
    const struct wb_job *job = run->job;
    const struct wb_method *method = run->method;
    if (!method)
        return wb_fail(run, "method", job->method, EINVAL);
    const char *wrong = wrong_field(job, method->options);
    if (wrong)
        return wb_fail(run, wrong, NULL, EINVAL);
    if (!(method->workloads & WB_BIT(job->workload)))
        return wb_cannot(run, "%s", method->workload_reason);
    if (!(method->syncs & WB_BIT(job->sync)))
        return wb_cannot(run, "%s", method->sync_reason);
    if (job->workload == WB_READ && job->sync != WB_SYNC_NONE)
        return wb_cannot(run, "reading leaves nothing to sync");
    run->next_sync = syncs_every(job->sync) ? job->sync_every_bytes : UINT64_MAX;
    run->open_flags_out = job->workload == WB_LOG ? O_APPEND : 0;
    return 0;
}
