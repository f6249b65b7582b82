/*
 * O_DIRECT: transfers between disk and record without the page cache. Addresses, offsets and lengths must be
 * multiples of the alignment that statx(2) reports, or of 4096 if it reports none; the bytes after the last
 * multiple are written with O_DIRECT cleared.
 */
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/vfs.h>

#include "../frame/raw.h"

enum { ASSUMED = 4096 }; /* sufficient on all file systems; the first call shows if O_DIRECT is supported */

struct direct {
    uint32_t align;  /* of offset and length, for both files; a power of two */
    bool assumed;    /* the file system does not report the alignment */
    bool cleared;    /* O_DIRECT is cleared to write the tail of the output */
};

static int prepare(struct wb_run *run)
{
    run->method_data = calloc(1, sizeof(struct direct));
    run->open_flags_in |= O_DIRECT;
    run->open_flags_out |= O_DIRECT;
    return run->method_data ? 0 : wb_fail(run, "malloc", NULL, ENOMEM);
}

static void release(struct wb_run *run)
{
    free(run->method_data);
}

static int align_for(struct wb_run *run, int fd, const char *path)
{
    struct direct *direct = run->method_data;
    uint32_t memory = ASSUMED, offset = ASSUMED;
    struct statfs system;
    if (fd < 0)
        return 0;
    const int rc = wb_direct_alignment(fd, &memory, &offset);
    wb_count(run, "statx", 1);
    if (rc == -EOPNOTSUPP && fstatfs(fd, &system) == 0 &&
        (system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC))
        return wb_cannot(run, "the file system is in memory: O_DIRECT needs a disk");
    if (rc < 0 && rc != -EOPNOTSUPP)
        return wb_fail(run, "statx", path, -rc);
    direct->assumed |= rc != 0;
    if (memory > 4096)
        return wb_cannot(run, "O_DIRECT needs memory aligned to %u bytes here", memory);
    if (offset < memory && offset < WB_TEXT_LINE)
        offset = memory; /* text records may start within a line */
    if (offset > direct->align)
        direct->align = offset;
    return 0;
}

static int open_direct(struct wb_run *run)
{
    struct direct *direct = run->method_data;
    const uint64_t record = run->job->record_bytes;
    if (wb_open_files(run, 0, 0) != 0)
        return -1;
    if (align_for(run, run->in, run->job->in_path) != 0 || align_for(run, run->out, run->job->out_path) != 0)
        return -1;
    const uint64_t align = direct->align, below = record - record % align;
    const uint64_t nearest = below > 0 && record - below <= align / 2 ? below : below + align;
    if (record % align != 0)
        return wb_cannot(run,
                         "O_DIRECT needs a multiple of %llu bytes as the record here; the nearest is %llu",
                         (unsigned long long)align, (unsigned long long)nearest);
    /* A short read shows the end already. A further read would start at an unaligned position and fail. */
    run->to_end = run->to_end && run->job->bytes % align == 0;
    return 0;
}

/* Reads whole multiples of the alignment; the bytes beyond the job's end are ignored. */
WB_INLINE ssize_t get(struct wb_io *io, unsigned char *to, size_t bytes, uint64_t at)
{
    const struct direct *direct = io->method_data;
    const size_t whole = (bytes + direct->align - 1) & ~(size_t)(direct->align - 1);
    const bool is_first = io->gets == 0; /* also after EINTR */
    (void)at;
    for (;;) {
        const ssize_t got = read(io->in, to, whole);
        io->gets++;
        if (got >= 0)
            return got < (ssize_t)bytes ? got : (ssize_t)bytes;
        if (errno != EINTR)
            return wb_refused(io->run, is_first ? "O_DIRECT" : NULL, "read", io->run->job->in_path,
                              errno);
    }
}

static int clear_direct(struct wb_run *run)
{
    struct direct *direct = run->method_data;
    const int flags = fcntl(run->out, F_GETFL);
    wb_count(run, "fcntl", 2);
    if (flags < 0 || fcntl(run->out, F_SETFL, flags & ~O_DIRECT) != 0)
        return wb_fail(run, "fcntl", run->job->out_path, errno);
    direct->cleared = true;
    return 0;
}

WB_INLINE int put_flagged(struct wb_io *io, const unsigned char *from, size_t bytes, int flags)
{
    const struct direct *direct = io->method_data;
    bool is_first = io->puts == 0; /* also after EINTR */
    while (bytes > 0) {
        const size_t tail = direct->cleared ? 0 : bytes & (direct->align - 1);
        if (tail == bytes && clear_direct(io->run) != 0)
            return -1;
        const size_t now = tail == bytes ? bytes : bytes - tail;
        const struct iovec vector = {(void *)(uintptr_t)from, now};
        const ssize_t put = flags ? wb_pwritev2(io->out, &vector, 1, -1, flags) : write(io->out, from, now);
        io->puts++;
        if (put > 0) {
            from += put;
            bytes -= (size_t)put;
            is_first = false;
        } else if (put == 0 || errno != EINTR) {
            return wb_refused(io->run, is_first ? "O_DIRECT" : NULL, flags ? "pwritev2" : "write",
                              io->run->job->out_path, put == 0 ? EIO : errno);
        }
    }
    return 0;
}

WB_INLINE int put(struct wb_io *io, const unsigned char *from, size_t bytes, uint64_t at)
{
    (void)at;
    return put_flagged(io, from, bytes, 0);
}

WB_INLINE int put_dsync(struct wb_io *io, const unsigned char *from, size_t bytes, uint64_t at)
{
    (void)at;
    return put_flagged(io, from, bytes, RWF_DSYNC);
}

static int transfer(struct wb_run *run)
{
    if (run->job->sync == WB_SYNC_RWF_DSYNC)
        return wb_loop(run, get, put_dsync, "read", "pwritev2");
    return wb_loop(run, get, put, "read", "write");
}

/* Checks if the file system used the page cache in spite of O_DIRECT, as some do. */
static int inspect(struct wb_run *run)
{
    struct wb_cache_state state;
    const struct wb_job *job = run->job;
    const struct direct *direct = run->method_data;
    if (direct->assumed)
        wb_remark(run, "the file system does not report the alignment of O_DIRECT: 4096 bytes assumed");
    if (job->workload == WB_READ)
        return 0; /* pages that were cached before the read stay cached */
    const int fd = open(job->out_path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return 0;
    const int rc = wb_read_cache_state(fd, job->bytes - job->bytes % direct->align, &state);
    close(fd);
    if (rc == 0 && state.cached > 1)
        wb_remark(run, "%llu of %llu written pages are in the page cache nevertheless",
                  (unsigned long long)state.cached, (unsigned long long)state.pages);
    return 0;
}

const struct wb_method wb_method_direct = {
    .name = "direct",
    .title = "read(2) and write(2) with O_DIRECT, past the page cache",
    .workloads = WB_ALL_WORKLOADS,
    .syncs = WB_ALL_SYNCS & ~WB_BIT(WB_SYNC_RANGE),
    .sync_reason = "O_DIRECT leaves nothing in the page cache for sync_file_range(2)",
    .options = WB_HAS_RECORD,
    .ops = {.prepare = prepare, .open = open_direct, .transfer = transfer, .inspect = inspect,
            .release = release},
};
