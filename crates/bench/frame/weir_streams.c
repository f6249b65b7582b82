/* Opens, buffers, flushes and closes the streams of the libweir methods. */
#include "weir_streams.h"

#include <errno.h>
#include <stdlib.h>

int wb_weir_prepare(struct wb_run *run)
{
    run->method_data = calloc(1, sizeof(struct wb_weir_streams));
    run->result->kernel_counted = 1;
    return run->method_data ? 0 : wb_fail(run, "malloc", NULL, ENOMEM);
}

/* Returns a stream that owns *fd, and sets *fd to -1; NULL after wb_fail(). */
static weir_stream *stream_over(struct wb_run *run, int *fd, const char *path)
{
    static const enum weir_mode modes[] = {
        [WB_MODE_DEFAULT] = WEIR_AUTO, [WB_MODE_NONE] = WEIR_NONE, [WB_MODE_LINE] = WEIR_LINE, [WB_MODE_FULL] = WEIR_FULL};
    struct weir_options options = {.mode = modes[run->job->mode], .buffer_bytes = run->job->buffer_bytes};
    if (options.mode == WEIR_NONE)
        options.buffer_bytes = 0;
    weir_stream *stream;
    int result = weir_fdopen(&stream, *fd, &options);
    if (result < 0) {
        wb_fail(run, "weir_fdopen", path, -result);
        return NULL;
    }
    *fd = -1;
    return stream;
}

int wb_weir_open(struct wb_run *run)
{
    struct wb_weir_streams *streams = run->method_data;
    const struct wb_job *job = run->job;
    if (wb_open_files(run, 0, 0) != 0)
        return -1;
    if (run->in >= 0)
        streams->in = stream_over(run, &run->in, job->in_path);
    if (run->out >= 0)
        streams->out = stream_over(run, &run->out, job->out_path);
    if (run->result->status != WB_OK)
        return -1;
    run->out = streams->out ? weir_fd(streams->out) : -1; /* for the syncs; the stream closes it */
    return 0;
}

int wb_weir_flush(struct wb_run *run)
{
    struct wb_weir_streams *streams = run->method_data;
    int result = streams->out ? weir_flush(streams->out) : 0;
    return result < 0 ? wb_fail(run, "write", run->job->out_path, -result) : 0;
}

int wb_weir_close(struct wb_run *run)
{
    struct wb_weir_streams *streams = run->method_data;
    int result;
    if (streams->out) {
        run->out = -1;
        if ((result = weir_close(streams->out)) < 0)
            wb_fail(run, "write", run->job->out_path, -result);
        wb_count(run, "close", 1);
    }
    if (streams->in) {
        if ((result = weir_close(streams->in)) < 0)
            wb_fail(run, "close", run->job->in_path, -result);
        wb_count(run, "close", 1);
    }
    streams->in = streams->out = NULL;
    return wb_close_files(run); /* descriptors without a stream, after a failure of weir_fdopen(3) */
}

void wb_weir_release(struct wb_run *run)
{
    free(run->method_data);
    run->method_data = NULL;
}
