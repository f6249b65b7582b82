/* The sync policies that make calls: at the end, or every sync_every_bytes, timed separately. Policies that are
 * flags of open(2) or pwritev2(2) need no code here. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "frame.h"

/* Starts writeback of [synced, moved) and waits for it. No metadata, no disk cache: no durability. */
static int sync_range(struct wb_run *run, uint64_t moved)
{
    return sync_file_range(run->out, (off_t)run->synced, (off_t)(moved - run->synced),
                           SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
                               SYNC_FILE_RANGE_WAIT_AFTER);
}

const char *wb_sync_call(uint32_t policy)
{
    return policy == WB_SYNC_RANGE ? "sync_file_range" : policy == WB_SYNC_FDATASYNC ? "fdatasync" : "fsync";
}

int wb_sync_once(struct wb_run *run, uint64_t moved)
{
    const uint32_t policy = run->job->sync;
    const bool is_first = run->result->syncs == 0; /* also after EINTR */
    int rc;
    do {
        rc = policy == WB_SYNC_RANGE       ? sync_range(run, moved)
             : policy == WB_SYNC_FDATASYNC ? fdatasync(run->out)
                                           : fsync(run->out);
        run->result->syncs++;
    } while (rc != 0 && errno == EINTR);
    if (rc != 0)
        return wb_refused(run, is_first ? wb_sync_call(policy) : NULL, wb_sync_call(policy),
                          run->job->out_path, errno);
    run->synced = moved;
    return 0;
}

int wb_sync_now(struct wb_run *run, uint64_t moved)
{
    /* The flush writes, so its time belongs to the transfer. */
    if (run->method->ops.flush && run->method->ops.flush(run) != 0)
        return -1;
    const uint64_t before = wb_clock(CLOCK_MONOTONIC);
    if (wb_sync_once(run, moved) != 0)
        return -1;
    run->result->sync_ns += wb_clock(CLOCK_MONOTONIC) - before;
    run->result->clock_reads += 2;
    const uint64_t every = run->job->sync_every_bytes;
    run->next_sync = moved > UINT64_MAX - every ? UINT64_MAX : moved + every;
    return 0;
}
