/*
 * preadv2(2) and pwritev2(2) with RWF_DONTCACHE (Linux 6.14): the kernel uses the page cache, and drops the
 * pages as soon as they are read or written back.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>

#include "../frame/raw.h"

struct before {
    uint64_t cached; /* pages of the input that were cached before the run: they stay */
};

/* Counts the job's pages of `path` that are cached. With `settle`, waits for writeback and retries until they
 * are dropped. Returns false if the kernel does not report them. */
static bool read_cache_state(const struct wb_run *run, const char *path, bool settle,
                             struct wb_cache_state *state)
{
    const struct timespec pause = {.tv_nsec = 5000000};
    const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return false;
    /* The kernel drops written pages shortly after fsync(2) returns. */
    bool known = !settle || fsync(fd) == 0;
    for (int tries = 0; known && tries < 20; tries++) {
        known = wb_read_cache_state(fd, run->job->bytes, state) == 0;
        if (!settle || state->cached == 0)
            break;
        nanosleep(&pause, NULL);
    }
    close(fd);
    return known;
}

static int prepare(struct wb_run *run)
{
    struct wb_cache_state state = {0};
    struct before *before = calloc(1, sizeof *before);
    if (!before)
        return wb_fail(run, "malloc", NULL, ENOMEM);
    run->method_data = before;
    if (run->job->workload == WB_READ && read_cache_state(run, run->job->in_path, false, &state))
        before->cached = state.cached;
    return 0;
}

static void release(struct wb_run *run)
{
    free(run->method_data);
}

WB_INLINE ssize_t get(struct wb_io *io, unsigned char *to, size_t bytes, uint64_t at)
{
    const struct iovec vector = {to, bytes};
    const bool is_first = io->gets == 0; /* also after EINTR */
    (void)at;
    for (;;) {
        const ssize_t got = wb_preadv2(io->in, &vector, 1, -1, RWF_DONTCACHE);
        io->gets++;
        if (got >= 0)
            return got;
        if (errno != EINTR)
            return wb_refused(io->run, is_first ? wb_flag_name(RWF_DONTCACHE) : NULL, "preadv2",
                              io->run->job->in_path, errno);
    }
}

WB_INLINE int put(struct wb_io *io, const unsigned char *from, size_t bytes, uint64_t at)
{
    (void)at;
    return wb_put_flagged(io, from, bytes, -1, RWF_DONTCACHE);
}

WB_INLINE int put_dsync(struct wb_io *io, const unsigned char *from, size_t bytes, uint64_t at)
{
    (void)at;
    return wb_put_flagged(io, from, bytes, -1, RWF_DONTCACHE | RWF_DSYNC);
}

static int transfer(struct wb_run *run)
{
    if (run->job->sync == WB_SYNC_RWF_DSYNC)
        return wb_loop(run, get, put_dsync, "preadv2", "pwritev2");
    return wb_loop(run, get, put, "preadv2", "pwritev2");
}

/* Checks if the kernel dropped the pages. */
static int inspect(struct wb_run *run)
{
    const struct wb_job *job = run->job;
    const struct before *before = run->method_data;
    const bool reads = job->workload == WB_READ;
    struct wb_cache_state state = {0};
    if (!read_cache_state(run, reads ? job->in_path : job->out_path, !reads, &state))
        wb_remark(run, "this kernel does not report if the pages left the page cache");
    else if (state.cached > before->cached)
        wb_remark(run, "%llu of %llu pages stayed in the page cache nevertheless",
                  (unsigned long long)(state.cached - before->cached), (unsigned long long)state.pages);
    return 0;
}

const struct wb_method wb_method_dontcache = {
    .name = "dontcache",
    .title = "preadv2(2) and pwritev2(2) with RWF_DONTCACHE",
    .workloads = WB_ALL_WORKLOADS,
    .syncs = WB_ALL_SYNCS,
    .options = WB_HAS_RECORD,
    .ops = {.prepare = prepare, .transfer = transfer, .inspect = inspect, .release = release},
};
