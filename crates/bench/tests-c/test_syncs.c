/* Every policy of every method makes the right number of syncs; on a disk, durable policies leave no dirty
 * bytes. */
#include <string.h>

#include "support.h"

static const char *const names[] = {"none",   "end",       "fsync", "fdatasync", "o_dsync",
                                    "o_sync", "rwf_dsync", "range"};

/* Returns the expected number of syncs: one after each pass with which the unsynced bytes reach the interval. */
static uint64_t syncs_due(const struct wb_job *job)
{
    const uint64_t passes = passes_of(job), pass = passes ? (job->bytes + passes - 1) / passes : 1;
    struct wb_method_info info = {0};
    find_method(job->method, &info);
    uint64_t size = info.options & WB_HAS_RECORD ? job->record_bytes : pass, since = 0, syncs = 0;
    if (info.options & WB_HAS_VECTOR)
        size *= job->vector_records;
    for (uint64_t moved = 0; moved < job->bytes;) {
        const uint64_t now = job->bytes - moved < size ? job->bytes - moved : size;
        moved += now;
        since += now;
        if (since >= job->sync_every_bytes) {
            syncs++;
            since = 0;
        }
    }
    return syncs;
}

static void check_syncs(const struct wb_job *job, const struct wb_result *result)
{
    uint64_t due = job->sync == WB_SYNC_END ? 1 : 0;
    const char *call = job->sync == WB_SYNC_FDATASYNC ? "fdatasync"
                       : job->sync == WB_SYNC_RANGE   ? "sync_file_range"
                                                      : "fsync";
    const bool every =
        job->sync == WB_SYNC_FSYNC || job->sync == WB_SYNC_FDATASYNC || job->sync == WB_SYNC_RANGE;
    if (every)
        due = syncs_due(job);
    expect(result->syncs == due && calls_of(result, call) == due, "%s: %llu syncs, not %llu", job_text(job),
           (unsigned long long)result->syncs, (unsigned long long)due);
    expect(result->clock_reads == 3 + (every ? 2 * due : due), "%s: clock reads", job_text(job));
    expect((result->sync_ns > 0) == (due > 0), "%s: %llu ns in syncs", job_text(job),
           (unsigned long long)result->sync_ns);
    expect(job->sync != WB_SYNC_RWF_DSYNC || job->bytes == 0 || strcmp(job->method, "io_uring") == 0 ||
               calls_of(result, "pwritev2") > 0,
           "%s: no flagged write", job_text(job));
}

/* Returns true if the policy leaves no dirty bytes: the last interval ends at the last byte. */
static bool leaves_no_dirty_bytes(const struct wb_job *job)
{
    const bool every =
        job->sync == WB_SYNC_FSYNC || job->sync == WB_SYNC_FDATASYNC || job->sync == WB_SYNC_RANGE;
    return job->sync != WB_SYNC_NONE && (!every || job->sync_every_bytes <= job->record_bytes);
}

static void check_policy(const struct wb_method_info *info, uint32_t sync, uint32_t workload, uint64_t record,
                uint64_t every, bool disk)
{
    struct wb_job job = make_job(info->name, workload, disk ? 40960 : 100001, record);
    job.sync = sync;
    job.sync_every_bytes = every;
    job.vector_records = disk ? 1 : 3;
    const bool may_be_unsupported = strcmp(info->name, "direct") == 0 || strcmp(info->name, "dontcache") == 0 ||
                         sync == WB_SYNC_RANGE;
    const struct wb_result result = run(&job, may_be_unsupported);
    if (result.status != WB_OK)
        return;
    check_syncs(&job, &result);
    if (disk && result.dirty_known && leaves_no_dirty_bytes(&job))
        expect(result.dirty_bytes == 0 && result.writeback_bytes == 0, "%s: %llu bytes are dirty",
               job_text(&job), (unsigned long long)result.dirty_bytes);
}

static void policies_of(const struct wb_method_info *info, uint32_t sync, const char *title)
{
    static const uint64_t records[] = {61, 4096}, everies[] = {1, 5000, 1000000};
    const bool disk = current_directory == disk_directory;
    begin("%s sync %s %s", title, names[sync], info->name);
    for (uint32_t workload = 0; workload < WB_WORKLOADS; workload++)
        for (int r = disk ? 1 : 0; r < 2; r++)
            for (int e = 0; e < (disk ? 1 : 3); e++) {
                const bool chars = !(info->options & WB_HAS_RECORD);
                if (!(info->workloads & WB_BIT(workload)) || workload == WB_READ)
                    continue;
                check_policy(info, sync, workload, records[r], chars && e == 0 ? 4096 : everies[e], disk);
            }
    end();
}

static void all_policies(const char *title)
{
    struct wb_method_info info;
    make_input(current_directory == disk_directory ? 40960 : 100001);
    for (size_t i = 0; wb_method_at(i, &info); i++)
        for (uint32_t sync = 0; sync < WB_SYNCS; sync++)
            if (info.syncs & WB_BIT(sync))
                policies_of(&info, sync, title);
}

/* At each sync the file has exactly the bytes before it: no byte is in a buffer or in flight. */
static void sizes_at_syncs(void)
{
    struct wb_method_info info;
    make_input(100001);
    begin("file sizes at syncs");
    for (size_t i = 0; wb_method_at(i, &info); i++) {
        struct wb_job job = make_job(info.name, WB_COPY, 100001, 2048);
        job.sync = WB_SYNC_FSYNC;
        job.sync_every_bytes = 16384;
        job.vector_records = 2;
        job.queue_depth = 32;
        sync_count = 0;
        if (strcmp(info.name, "mmap") == 0 || run(&job, true).status != WB_OK)
            continue; /* a mapped file has its final size from the start */
        expect(sync_count == 6, "%s: %d syncs", info.name, sync_count);
        for (int k = 0; k < sync_count; k++)
            expect(size_at_sync[k] == 16384u * (unsigned)(k + 1), "%s: %llu bytes at sync %d", info.name,
                   (unsigned long long)size_at_sync[k], k);
    }
    end();
}

/* Dirty bytes must be reported without a sync, or the checks for none prove nothing. */
static void dirty_bytes_are_reported(void)
{
    begin("dirty bytes are reported");
    struct wb_job job = make_job("syscall", WB_WRITE, 1 << 20, 4096);
    const struct wb_result result = run(&job, false);
    if (!result.dirty_known)
        skip("this kernel has no cachestat");
    else if (result.dirty_bytes + result.writeback_bytes == 0)
        skip("%s has no dirty pages", current_directory);
    else
        expect(result.dirty_bytes + result.writeback_bytes <= 1 << 20, "too many");
    end();
}

void test_syncs(void)
{
    all_policies("memory");
    sizes_at_syncs();
    current_directory = disk_directory;
    dirty_bytes_are_reported();
    all_policies("disk");
    current_directory = memory_directory;
}
