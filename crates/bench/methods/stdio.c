/* fread(3) and fwrite(3) through the streams of the C library. */
#include <errno.h>

#include "../frame/loops.h"
#include "../frame/streams.h"

WB_INLINE ssize_t get(struct wb_io *io, unsigned char *to, size_t bytes, uint64_t at)
{
    struct wb_streams *streams = io->method_data;
    (void)at;
    const size_t got = fread(to, 1, bytes, streams->in);
    if (got == 0)
        wb_streams_errors(io->run);
    return (ssize_t)got;
}

WB_INLINE int put(struct wb_io *io, const unsigned char *from, size_t bytes, uint64_t at)
{
    struct wb_streams *streams = io->method_data;
    (void)at;
    if (fwrite(from, 1, bytes, streams->out) == bytes)
        return 0;
    return wb_fail(io->run, "write", io->run->job->out_path, errno);
}

static int transfer(struct wb_run *run)
{
    return wb_loop(run, get, put, "read", "write");
}

const struct wb_method wb_method_stdio = {
    .name = "stdio",
    .title = "fread(3) and fwrite(3), one of each per record",
    .workloads = WB_ALL_WORKLOADS,
    .syncs = WB_STREAM_SYNCS,
    .sync_reason = WB_STREAM_SYNC_REASON,
    .options = WB_HAS_RECORD | WB_HAS_BUFFER | WB_HAS_MODE,
    .ops = {WB_STREAM_OPS, .transfer = transfer},
};
