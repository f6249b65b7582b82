/*
 * preadv2(2) with RWF_NOWAIT, and read(2) for what is not in the page cache: what a server pays that never wants to wait
 * for a device in its event loop.
 */
#include "../frame/raw.h"

#ifndef RWF_NOWAIT
#define RWF_NOWAIT 0x00000008 /* Linux 4.14 */
#endif

WB_INLINE ssize_t get(struct wb_io *io, unsigned char *to, size_t bytes, uint64_t at)
{
    const struct iovec vector = {to, bytes};
    (void)at;
    for (int flags = RWF_NOWAIT;;) {
        const ssize_t got = wb_preadv2(io->in, &vector, 1, -1, flags);
        io->gets++;
        if (got >= 0)
            return got;
        if (errno == EAGAIN || errno == EOPNOTSUPP)
            flags = 0;
        else if (errno != EINTR)
            return wb_fail(io->run, "preadv2", io->run->job->in_path, errno);
    }
}

WB_INLINE int put(struct wb_io *io, const unsigned char *from, size_t bytes, uint64_t at)
{
    (void)at;
    return wb_put_flagged(io, from, bytes, -1, 0);
}

static int transfer(struct wb_run *run)
{
    return wb_loop(run, get, put, "preadv2", "pwritev2");
}

const struct wb_method wb_method_nowait = {
    .name = "nowait",
    .title = "preadv2(2) with RWF_NOWAIT, then without",
    .workloads = WB_ALL_WORKLOADS,
    .syncs = WB_ALL_SYNCS & ~WB_BIT(WB_SYNC_RWF_DSYNC),
    .options = WB_HAS_RECORD,
    .ops = {.transfer = transfer},
};
