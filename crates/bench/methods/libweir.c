/* weir_read(3) and weir_write(3): the streams of libweir, one call of each per record. */
#include "../frame/loops.h"
#include "../frame/weir_streams.h"

WB_INLINE ssize_t get(struct wb_io *io, unsigned char *to, size_t bytes, uint64_t at)
{
    struct wb_weir_streams *streams = io->method_data;
    (void)at;
    const ssize_t got = weir_read(streams->in, to, bytes);
    return got < 0 ? wb_fail(io->run, "read", io->run->job->in_path, (int)-got) : got;
}

WB_INLINE int put(struct wb_io *io, const unsigned char *from, size_t bytes, uint64_t at)
{
    struct wb_weir_streams *streams = io->method_data;
    (void)at;
    ssize_t written = weir_write(streams->out, from, bytes);
    if (written >= 0 && (size_t)written < bytes) /* short because of an error: the next call returns it */
        written = weir_write(streams->out, from + written, bytes - (size_t)written);
    return written < 0 ? wb_fail(io->run, "write", io->run->job->out_path, (int)-written) : 0;
}

static int transfer(struct wb_run *run)
{
    return wb_loop(run, get, put, "read", "write");
}

const struct wb_method wb_method_libweir = {
    .name = "libweir",
    .title = "weir_read(3) and weir_write(3) of libweir, one of each per record",
    .workloads = WB_ALL_WORKLOADS,
    .syncs = WB_WEIR_SYNCS,
    .sync_reason = WB_WEIR_SYNC_REASON,
    .options = WB_HAS_RECORD | WB_HAS_BUFFER | WB_HAS_MODE,
    .ops = {WB_WEIR_OPS, .transfer = transfer},
};
