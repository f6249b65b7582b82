/*
 * preadv2(2) and pwritev2(2) with RWF_DONTCACHE (Linux 6.14): through the page cache, but the pages leave
 * it as soon as they have been read or written back.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>

#include "../frame/raw.h"

struct before {
    uint64_t cached; /* pages of the input that were cached already: those stay */
};

/* How many of the job's pages of `path` are cached; false where nobody knows. */
static bool look(const struct wb_run *run, const char *path, bool settle, struct wb_cache_state *state)
{
    const struct timespec pause = {.tv_nsec = 5000000};
    const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return false;
    /* Written pages leave when their writeback ends, a little later than the waiting call returns. */
    bool known = !settle || fsync(fd) == 0;
    for (int tries = 0; known && tries < 20; tries++) {
        known = wb_cache_look(fd, run->job->bytes, state) == 0;
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
    run->own = before;
    if (run->job->workload == WB_READ && look(run, run->job->in_path, false, &state))
        before->cached = state.cached;
    return 0;
}

static void release(struct wb_run *run)
{
    free(run->own);
}

WB_INLINE ssize_t get(struct wb_io *io, unsigned char *to, size_t bytes, uint64_t at)
{
    const struct iovec vector = {to, bytes};
    (void)at;
    for (;;) {
        const ssize_t got = wb_preadv2(io->in, &vector, 1, -1, RWF_DONTCACHE);
        io->gets++;
        if (got >= 0)
            return got;
        if (errno != EINTR)
            return wb_refused(io->run, io->gets == 1 ? wb_flag_name(RWF_DONTCACHE) : NULL, "preadv2",
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

/* Untimed: did the pages really leave? */
static int inspect(struct wb_run *run)
{
    const struct wb_job *job = run->job;
    const struct before *before = run->own;
    const bool reads = job->workload == WB_READ;
    struct wb_cache_state state = {0};
    if (!look(run, reads ? job->in_path : job->out_path, !reads, &state))
        wb_remark(run, "whether the pages left the page cache is not known here");
    else if (state.cached > before->cached)
        wb_remark(run, "%llu of %llu pages stayed in the page cache all the same",
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
