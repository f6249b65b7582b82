/* read(2) and write(2), one of each per record: every other method is compared with this loop. */
#include "../frame/raw.h"

WB_INLINE ssize_t get(struct wb_io *io, unsigned char *to, size_t bytes, uint64_t at)
{
    (void)at;
    for (;;) {
        const ssize_t got = read(io->in, to, bytes);
        io->gets++;
        if (got >= 0)
            return got;
        if (errno != EINTR)
            return wb_fail(io->run, "read", io->run->job->in_path, errno);
    }
}

WB_INLINE int put(struct wb_io *io, const unsigned char *from, size_t bytes, uint64_t at)
{
    (void)at;
    while (bytes > 0) {
        const ssize_t put = write(io->out, from, bytes);
        io->puts++;
        if (put > 0) {
            from += put;
            bytes -= (size_t)put;
        } else if (put == 0 || errno != EINTR) {
            return wb_fail(io->run, "write", io->run->job->out_path, put == 0 ? EIO : errno);
        }
    }
    return 0;
}

WB_INLINE int put_dsync(struct wb_io *io, const unsigned char *from, size_t bytes, uint64_t at)
{
    (void)at;
    return wb_put_flagged(io, from, bytes, -1, RWF_DSYNC);
}

static int transfer(struct wb_run *run)
{
    if (run->job->sync == WB_SYNC_RWF_DSYNC)
        return wb_loop(run, get, put_dsync, "read", "pwritev2");
    return wb_loop(run, get, put, "read", "write");
}

const struct wb_method wb_method_syscall = {
    .name = "syscall",
    .title = "read(2) and write(2), one of each per record",
    .workloads = WB_ALL_WORKLOADS,
    .syncs = WB_ALL_SYNCS,
    .options = WB_HAS_RECORD,
    .ops = {.transfer = transfer},
};
