/* Samples of several threads that write one file. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weir.h>

#include "frame.h"
#include "shared.h"

struct shared {
    const struct wb_shared_job *job;
    int (*put)(struct shared *shared);
    int fd;
    FILE *file;
    char *buffer;
    weir_stream *stream;
    pthread_mutex_t lock;
    pthread_cond_t synced;
    size_t pending;
    uint64_t written, durable; /* records */
    bool syncing;
    int error; /* the first -errno */
    char record[4096];
};

static int write_record(struct shared *shared)
{
    const size_t bytes = shared->job->record_bytes;
    const ssize_t written = write(shared->fd, shared->record, bytes);
    return written == (ssize_t)bytes ? 0 : written < 0 ? -errno : -EIO;
}

static int put_buffered(struct shared *shared)
{
    const size_t bytes = shared->job->record_bytes;
    int result = 0;
    pthread_mutex_lock(&shared->lock);
    if (shared->pending + bytes > shared->job->buffer_bytes) {
        shared->pending = 0;
        result = fflush(shared->file) == 0 ? 0 : -errno;
    }
    if (result == 0 && fwrite(shared->record, 1, bytes, shared->file) != bytes)
        result = -errno;
    shared->pending += bytes;
    pthread_mutex_unlock(&shared->lock);
    return result;
}

static int put_written(struct shared *shared)
{
    pthread_mutex_lock(&shared->lock);
    const int result = write_record(shared);
    pthread_mutex_unlock(&shared->lock);
    return result;
}

static int put_grouped(struct shared *shared)
{
    pthread_mutex_lock(&shared->lock);
    int result = shared->error ? shared->error : write_record(shared);
    const uint64_t mine = ++shared->written;
    while (result == 0 && shared->durable < mine) {
        if (shared->syncing) {
            pthread_cond_wait(&shared->synced, &shared->lock);
            result = shared->error;
            continue;
        }
        const uint64_t covered = shared->written;
        shared->syncing = true;
        pthread_mutex_unlock(&shared->lock);
        result = fdatasync(shared->fd) == 0 ? 0 : -errno;
        pthread_mutex_lock(&shared->lock);
        shared->syncing = false;
        shared->durable = covered;
        shared->error = shared->error ? shared->error : result;
        pthread_cond_broadcast(&shared->synced);
    }
    pthread_mutex_unlock(&shared->lock);
    return result;
}

static int put_synced(struct shared *shared)
{
    const int result = put_written(shared);
    if (result != 0)
        return result;
    return fdatasync(shared->fd) == 0 ? 0 : -errno;
}

static int put_libweir(struct shared *shared)
{
    const ssize_t put = weir_putrec(shared->stream, shared->record, shared->job->record_bytes);
    if (put < 0 || shared->job->kind != WB_SHARED_LIBWEIR_GROUP)
        return put < 0 ? (int)put : 0;
    return weir_sync(shared->stream, WEIR_DATA);
}

static int open_libweir(struct shared *shared)
{
    const struct wb_shared_job *job = shared->job;
    const struct weir_options options = {
        .mode = job->kind == WB_SHARED_LIBWEIR ? WEIR_RECORD : WEIR_NONE,
        .buffer_bytes = job->kind == WB_SHARED_LIBWEIR ? job->buffer_bytes : 0,
        .flags = WEIR_THREADS,
        .separator = WEIR_SEPARATOR_NONE,
    };
    shared->put = put_libweir;
    return weir_open(&shared->stream, job->path, O_WRONLY | O_APPEND, &options);
}

static int open_output(struct shared *shared)
{
    const struct wb_shared_job *job = shared->job;
    if (job->kind == WB_SHARED_LIBWEIR || job->kind == WB_SHARED_LIBWEIR_WRITE ||
        job->kind == WB_SHARED_LIBWEIR_GROUP)
        return open_libweir(shared);
    shared->put = job->kind == WB_SHARED_BUFFER ? put_buffered :
                  job->kind == WB_SHARED_WRITE  ? put_written :
                  job->kind == WB_SHARED_EACH   ? put_synced :
                                                  put_grouped;
    shared->fd = open(job->path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (shared->fd < 0)
        return -errno;
    if (job->kind != WB_SHARED_BUFFER)
        return 0;
    shared->buffer = malloc(job->buffer_bytes);
    shared->file = shared->buffer ? fdopen(shared->fd, "a") : NULL;
    if (!shared->file)
        return -errno;
    setvbuf(shared->file, shared->buffer, _IOFBF, job->buffer_bytes);
    return 0;
}

static int close_output(struct shared *shared)
{
    int result = 0;
    if (shared->stream)
        result = weir_close(shared->stream);
    else if (shared->file)
        result = fclose(shared->file) == 0 ? 0 : -errno;
    else if (shared->fd >= 0)
        close(shared->fd);
    free(shared->buffer);
    return result;
}

static void *write_records(void *data)
{
    struct shared *shared = data;
    pthread_mutex_lock(&shared->lock); /* the creator holds it until all threads exist */
    int result = shared->error;
    pthread_mutex_unlock(&shared->lock);
    for (uint64_t i = 0; i < shared->job->records && result == 0; i++)
        result = shared->put(shared);
    if (result != 0) {
        pthread_mutex_lock(&shared->lock);
        shared->error = shared->error ? shared->error : result;
        pthread_mutex_unlock(&shared->lock);
    }
    return NULL;
}

static int run_threads(struct shared *shared, struct wb_shared_result *result)
{
    pthread_t threads[WB_MAX_WRITERS];
    uint32_t started = 0;
    pthread_mutex_lock(&shared->lock);
    while (started < shared->job->writers && shared->error == 0) {
        shared->error = -pthread_create(&threads[started], NULL, write_records, shared);
        started += shared->error == 0;
    }
    const uint64_t cpu = wb_clock(CLOCK_PROCESS_CPUTIME_ID), elapsed = wb_clock(CLOCK_MONOTONIC);
    pthread_mutex_unlock(&shared->lock);
    for (uint32_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    result->elapsed_ns = wb_clock(CLOCK_MONOTONIC) - elapsed;
    result->cpu_ns = wb_clock(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    return shared->error;
}

int wb_measure_shared(const struct wb_shared_job *job, struct wb_shared_result *result)
{
    if (job->kind >= WB_SHARINGS || job->writers < 1 || job->writers > WB_MAX_WRITERS ||
        job->record_bytes < 1 || job->record_bytes > sizeof((struct shared *)0)->record)
        return -EINVAL;
    struct shared *shared = calloc(1, sizeof *shared);
    if (!shared)
        return -ENOMEM;
    shared->job = job;
    shared->fd = -1;
    memset(shared->record, 'x', job->record_bytes - 1);
    shared->record[job->record_bytes - 1] = '\n';
    pthread_mutex_init(&shared->lock, NULL);
    pthread_cond_init(&shared->synced, NULL);
    int status = open_output(shared);
    if (status == 0)
        status = run_threads(shared, result);
    const int closed = close_output(shared);
    pthread_cond_destroy(&shared->synced);
    pthread_mutex_destroy(&shared->lock);
    free(shared);
    return status != 0 ? status : closed;
}
