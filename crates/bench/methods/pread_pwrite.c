/* pread(2) and pwrite(2): as syscall.c, but the program passes the offset. */
#include <fcntl.h>

#include "../frame/raw.h"

/* Clears O_APPEND, with which pwrite(2) ignores its offset on Linux. */
static int prepare(struct wb_run *run)
{
    run->open_flags_out &= ~O_APPEND;
    return 0;
}

WB_INLINE ssize_t get(struct wb_io *io, unsigned char *to, size_t bytes, uint64_t at)
{
    for (;;) {
        const ssize_t got = pread(io->in, to, bytes, (off_t)at);
        io->gets++;
        if (got >= 0)
            return got;
        if (errno != EINTR)
            return wb_fail(io->run, "pread64", io->run->job->in_path, errno);
    }
}

WB_INLINE int put(struct wb_io *io, const unsigned char *from, size_t bytes, uint64_t at)
{
    while (bytes > 0) {
        const ssize_t put = pwrite(io->out, from, bytes, (off_t)at);
        io->puts++;
        if (put > 0) {
            from += put;
            bytes -= (size_t)put;
            at += (uint64_t)put;
        } else if (put == 0 || errno != EINTR) {
            return wb_fail(io->run, "pwrite64", io->run->job->out_path, put == 0 ? EIO : errno);
        }
    }
    return 0;
}

WB_INLINE int put_dsync(struct wb_io *io, const unsigned char *from, size_t bytes, uint64_t at)
{
    return wb_put_flagged(io, from, bytes, (int64_t)at, RWF_DSYNC);
}

static int transfer(struct wb_run *run)
{
    if (run->job->sync == WB_SYNC_RWF_DSYNC)
        return wb_loop(run, get, put_dsync, "pread64", "pwritev2");
    return wb_loop(run, get, put, "pread64", "pwrite64");
}

const struct wb_method wb_method_pread_pwrite = {
    .name = "pread-pwrite",
    .title = "pread(2) and pwrite(2), one of each per record",
    .workloads = WB_ALL_WORKLOADS,
    .syncs = WB_ALL_SYNCS,
    .options = WB_HAS_RECORD,
    .ops = {.prepare = prepare, .transfer = transfer},
};
