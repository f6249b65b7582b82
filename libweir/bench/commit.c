/* commit.c: threads that each wait until their record is on the device before they write the next. */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <weir.h>

#include "frame.h"

enum { THREADS = 16 };

static const char RECORD[] =
    "2025-07-22T10:30:00 INFO a record that must be on the device before the next step is taken.....";
enum { RECORD_BYTES = sizeof RECORD - 1 }; /* without a newline: weir_putrec adds it */

struct task {
    int fd;
    weir_stream *stream;
    int (*commit)(struct task *task); /* writes and syncs one record; returns 0 when it is on the device */
    atomic_bool stop;
    atomic_bool failed;
    atomic_long records;
};

static int commit_alone(struct task *task)
{
    char line[RECORD_BYTES + 1];
    memcpy(line, RECORD, RECORD_BYTES);
    line[RECORD_BYTES] = '\n';
    return write(task->fd, line, sizeof line) == (ssize_t)sizeof line && fdatasync(task->fd) == 0 ? 0 : -1;
}

static int commit_together(struct task *task)
{
    ssize_t accepted = weir_putrec(task->stream, RECORD, RECORD_BYTES);
    return accepted == RECORD_BYTES && weir_sync(task->stream, WEIR_DATA) == 0 ? 0 : -1;
}

static void *worker(void *argument)
{
    struct task *task = argument;
    long records = 0;
    while (!atomic_load_explicit(&task->stop, memory_order_relaxed)) {
        if (task->commit(task) < 0) {
            atomic_store(&task->failed, true);
            break;
        }
        records++;
    }
    atomic_fetch_add(&task->records, records);
    return NULL;
}

static long run(struct task *task, const struct work *work, int threads)
{
    pthread_t workers[THREADS];
    struct timespec span = { work->count / 1000, work->count % 1000 * 1000000 };
    for (int i = 0; i < threads; i++)
        if (pthread_create(&workers[i], NULL, worker, task) != 0)
            abort();
    nanosleep(&span, NULL);
    atomic_store(&task->stop, true);
    for (int i = 0; i < threads; i++)
        pthread_join(workers[i], NULL);
    return task->failed ? -1 : task->records;
}

static long alone(const struct work *work, int threads)
{
    struct task task = { .fd = open(work->out, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600),
                         .commit = commit_alone };
    if (task.fd < 0)
        return -1;
    long records = run(&task, work, threads);
    return close(task.fd) == 0 ? records : -1;
}

static long each(const struct work *work) { return alone(work, THREADS); }
static long single(const struct work *work) { return alone(work, 1); }

static long group(const struct work *work)
{
    struct weir_options options = { .mode = WEIR_RECORD, .flags = WEIR_THREADS };
    struct task task = { .commit = commit_together };
    if (weir_open(&task.stream, work->out, O_WRONLY | O_CREAT | O_APPEND, &options) < 0)
        return -1;
    long records = run(&task, work, THREADS);
    return weir_close(task.stream) == 0 ? records : -1;
}

const struct contender contenders[] = {
    { "commit", "each", each },
    { "commit", "single", single },
    { "commit", "group", group },
    { NULL, NULL, NULL },
};
