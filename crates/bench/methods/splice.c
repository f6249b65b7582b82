/* splice(2): moves pages from the input into a pipe, and from the pipe into the output. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "../frame/loops.h"

struct pipe {
    int ends[2]; /* -1: closed */
};

static int prepare(struct wb_run *run)
{
    struct pipe *pipe = malloc(sizeof *pipe);
    if (!pipe)
        return wb_fail(run, "malloc", NULL, ENOMEM);
    *pipe = (struct pipe){{-1, -1}};
    run->method_data = pipe;
    return 0;
}

static void release(struct wb_run *run)
{
    free(run->method_data);
}

/* Sizes the pipe for one record, which may span one page more than its size; else as large as allowed. */
static void size_pipe(struct wb_run *run, int fd)
{
    const long record = (long)run->job->record_bytes;
    long size = fcntl(fd, F_GETPIPE_SZ), wanted = record + sysconf(_SC_PAGESIZE);
    wb_count(run, "fcntl", 1);
    while (wanted > size) {
        const int got = fcntl(fd, F_SETPIPE_SZ, (int)wanted);
        wb_count(run, "fcntl", 1);
        if (got > 0)
            size = got;
        wanted /= 2;
    }
    if (size < record)
        wb_remark(run, "the pipe holds %ld bytes, less than a record", size);
}

static int open_pipe(struct wb_run *run)
{
    struct pipe *pipe = run->method_data;
    if (wb_open_files(run, 0, 0) != 0)
        return -1;
    wb_count(run, "pipe2", 1);
    if (pipe2(pipe->ends, O_CLOEXEC) != 0)
        return wb_fail(run, "pipe2", NULL, errno);
    size_pipe(run, pipe->ends[1]);
    return 0;
}

static int close_pipe(struct wb_run *run)
{
    struct pipe *pipe = run->method_data;
    for (int i = 0; i < 2; i++) {
        if (pipe->ends[i] < 0)
            continue;
        close(pipe->ends[i]);
        pipe->ends[i] = -1;
        wb_count(run, "close", 1);
    }
    return wb_close_files(run);
}

/* Calls splice(2), again after EINTR. */
WB_INLINE ssize_t splice_some(struct wb_io *io, int from, int to, size_t bytes, uint64_t *calls,
                              const char *path)
{
    const bool is_first = *calls == 0; /* also after EINTR */
    for (;;) {
        const ssize_t moved = splice(from, NULL, to, NULL, bytes, SPLICE_F_MOVE);
        (*calls)++;
        if (moved >= 0)
            return moved;
        if (errno != EINTR)
            return wb_refused(io->run, is_first ? "splice" : NULL, "splice", path, errno);
    }
}

/* Moves `bytes` bytes from the pipe to the output, so that the pipe is empty before the next record. */
WB_INLINE int drain(struct wb_io *io, const struct pipe *pipe, size_t bytes)
{
    const char *path = io->run->job->out_path;
    while (bytes > 0) {
        const ssize_t out = splice_some(io, pipe->ends[0], io->out, bytes, &io->puts, path);
        if (out == 0)
            return wb_fail(io->run, "splice", path, EIO);
        if (out < 0)
            return -1;
        bytes -= (size_t)out;
    }
    return 0;
}

/* Moves up to `bytes` bytes, at most the pipe's size. */
WB_INLINE ssize_t move(struct wb_io *io, size_t bytes)
{
    const struct pipe *pipe = io->method_data;
    const ssize_t in = splice_some(io, io->in, pipe->ends[1], bytes, &io->gets, io->run->job->in_path);
    return in > 0 && drain(io, pipe, (size_t)in) != 0 ? -1 : in;
}

static int transfer(struct wb_run *run)
{
    return wb_loop_move(run, move, "splice", "splice");
}

const struct wb_method wb_method_splice = {
    .name = "splice",
    .title = "splice(2) from file to pipe to file",
    .workloads = WB_BIT(WB_COPY),
    .workload_reason = WB_MOVE_REASON,
    .syncs = WB_MOVE_SYNCS,
    .sync_reason = WB_MOVE_SYNC_REASON,
    .options = WB_HAS_RECORD,
    .ops = {.prepare = prepare, .open = open_pipe, .transfer = transfer, .close = close_pipe,
            .release = release},
};
