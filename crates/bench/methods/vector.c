/* readv(2) and writev(2): vector_records records per call, one iovec each. */
#include <stdlib.h>

#include "../frame/raw.h"

/* Consecutive records from `base` with a total of `bytes` bytes. Reused, because the next call usually has the
 * same base and size. */
struct vector {
    uint64_t record_bytes;
    const unsigned char *base;
    size_t bytes;
    int count;
    struct iovec records[];
};

static int prepare(struct wb_run *run)
{
    const struct wb_job *job = run->job;
    struct vector *vector = calloc(1, sizeof *vector + job->vector_records * sizeof vector->records[0]);
    if (!vector)
        return wb_fail(run, "malloc", NULL, ENOMEM);
    vector->record_bytes = job->record_bytes;
    run->method_data = vector;
    return 0;
}

static void release(struct wb_run *run)
{
    free(run->method_data);
}

static void refill(struct vector *vector, const unsigned char *base, size_t bytes)
{
    vector->base = base;
    vector->bytes = bytes;
    vector->count = 0;
    while (bytes > 0) {
        const size_t length = wb_pass_length(bytes, vector->record_bytes);
        vector->records[vector->count++] = (struct iovec){(void *)(uintptr_t)base, length};
        base += length;
        bytes -= length;
    }
}

WB_INLINE struct vector *vector_over(struct wb_io *io, const unsigned char *base, size_t bytes)
{
    struct vector *vector = io->method_data;
    if (vector->base != base || vector->bytes != bytes)
        refill(vector, base, bytes);
    return vector;
}

WB_INLINE ssize_t get(struct wb_io *io, unsigned char *to, size_t bytes, uint64_t at)
{
    (void)at;
    const struct vector *vector = vector_over(io, to, bytes);
    for (;;) {
        const ssize_t got = readv(io->in, vector->records, vector->count);
        io->gets++;
        if (got >= 0)
            return got;
        if (errno != EINTR)
            return wb_fail(io->run, "readv", io->run->job->in_path, errno);
    }
}

WB_INLINE ssize_t write_vector(int fd, const struct vector *vector, int flags)
{
    return flags ? wb_pwritev2(fd, vector->records, vector->count, -1, flags)
                 : writev(fd, vector->records, vector->count);
}

WB_INLINE int put_flagged(struct wb_io *io, const unsigned char *from, size_t bytes, int flags)
{
    bool is_first = io->puts == 0; /* also after EINTR */
    while (bytes > 0) {
        const ssize_t put = write_vector(io->out, vector_over(io, from, bytes), flags);
        io->puts++;
        if (put > 0) {
            from += put;
            bytes -= (size_t)put;
            is_first = false;
        } else if (put == 0 || errno != EINTR) {
            return wb_refused(io->run, flags && is_first ? "RWF_DSYNC" : NULL,
                              flags ? "pwritev2" : "writev", io->run->job->out_path,
                              put == 0 ? EIO : errno);
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
        return wb_loop(run, get, put_dsync, "readv", "pwritev2");
    return wb_loop(run, get, put, "readv", "writev");
}

const struct wb_method wb_method_vector = {
    .name = "vector",
    .title = "readv(2) and writev(2), several records per call",
    .workloads = WB_ALL_WORKLOADS,
    .syncs = WB_ALL_SYNCS,
    .options = WB_HAS_RECORD | WB_HAS_VECTOR,
    .ops = {.prepare = prepare, .transfer = transfer, .release = release},
};
