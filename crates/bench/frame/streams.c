/* Opens, buffers, flushes and closes the streams of the stdio(3) methods. */
#include "streams.h"

#include <errno.h>
#include <stdlib.h>

int wb_streams_prepare(struct wb_run *run)
{
    const uint64_t bytes = run->job->buffer_bytes;
    struct wb_streams *streams = calloc(1, sizeof *streams);
    if (!streams)
        return wb_fail(run, "malloc", NULL, ENOMEM);
    run->method_data = streams;
    run->result->kernel_counted = 1;
    if (bytes == 0 || run->job->mode == WB_MODE_NONE)
        return 0;
    streams->in_buffer = wb_allocate(run, bytes);
    streams->out_buffer = streams->in_buffer ? wb_allocate(run, bytes) : NULL;
    return streams->out_buffer ? 0 : -1;
}

/* Sets mode and buffer. The default mode without a size leaves the stream untouched, as most programs do. */
static int set_buffer(struct wb_run *run, FILE *stream, unsigned char *buffer)
{
    const struct wb_job *job = run->job;
    const int mode = job->mode == WB_MODE_NONE ? _IONBF : job->mode == WB_MODE_LINE ? _IOLBF : _IOFBF;
    if (job->mode == WB_MODE_DEFAULT && job->buffer_bytes == 0)
        return 0;
    if (setvbuf(stream, (char *)buffer, mode, buffer ? (size_t)job->buffer_bytes : 0) != 0)
        return wb_fail(run, "setvbuf", NULL, errno ? errno : EINVAL);
    return 0;
}

/* Returns a stream that owns *fd, and sets *fd to -1; NULL after wb_fail(). */
static FILE *stream_over(struct wb_run *run, int *fd, const char *mode, const char *path,
                         unsigned char *buffer)
{
    FILE *stream = fdopen(*fd, mode);
    if (!stream) {
        wb_fail(run, "fdopen", path, errno);
        return NULL;
    }
    *fd = -1;
    (void)set_buffer(run, stream, buffer); /* a failure is recorded in the result */
    return stream;
}

int wb_streams_open(struct wb_run *run)
{
    struct wb_streams *streams = run->method_data;
    const struct wb_job *job = run->job;
    if (wb_open_files(run, 0, 0) != 0)
        return -1;
    if (run->in >= 0)
        streams->in = stream_over(run, &run->in, "r", job->in_path, streams->in_buffer);
    if (run->out >= 0)
        streams->out = stream_over(run, &run->out, job->workload == WB_LOG ? "a" : "w", job->out_path,
                                   streams->out_buffer);
    if (run->result->status != WB_OK)
        return -1;
    run->out = streams->out ? fileno(streams->out) : -1; /* for the syncs; the stream closes it */
    return 0;
}

int wb_streams_flush(struct wb_run *run)
{
    struct wb_streams *streams = run->method_data;
    if (streams->out && fflush(streams->out) != 0)
        return wb_fail(run, "write", run->job->out_path, errno);
    return 0;
}

int wb_streams_close(struct wb_run *run)
{
    struct wb_streams *streams = run->method_data;
    if (streams->out) {
        run->out = -1;
        if (fclose(streams->out) != 0)
            wb_fail(run, "write", run->job->out_path, errno);
        wb_count(run, "close", 1);
    }
    if (streams->in) {
        if (fclose(streams->in) != 0)
            wb_fail(run, "close", run->job->in_path, errno);
        wb_count(run, "close", 1);
    }
    streams->in = streams->out = NULL;
    return wb_close_files(run); /* descriptors without a stream, after a failure of fdopen(3) */
}

void wb_streams_release(struct wb_run *run)
{
    struct wb_streams *streams = run->method_data;
    if (!streams)
        return;
    free(streams->in_buffer);
    free(streams->out_buffer);
    free(streams);
    run->method_data = NULL;
}

void wb_streams_errors(struct wb_run *run)
{
    const struct wb_streams *streams = run->method_data;
    const int error = errno ? errno : EIO;
    if (streams->in && ferror(streams->in))
        wb_fail(run, "read", run->job->in_path, error);
    if (streams->out && ferror(streams->out))
        wb_fail(run, "write", run->job->out_path, error);
}
