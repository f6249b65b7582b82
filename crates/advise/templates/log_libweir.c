/* Appends the lines of standard input to a file, with libweir(7). Way of writing: @NAME@.
 * Build: cc -O2 -pthread -o log log.c $(pkg-config --cflags --libs weir)      Use: log FILE < records
 * In a program of your own, call log_open, log_record with each record and its newline, and log_close. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
%if period
#include <pthread.h>
%end
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
%if period
#include <time.h>
%end
#include <weir.h>

%if timer
#define PERIOD_MS @PERIOD_MS@
%end

static weir_stream *log_stream;
%if period
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t log_stop;
static pthread_t log_timer;
static int log_stopped;

/* Writes what is pending and forces it to the device. The timer ignores the result: log_close returns it, because an
 * error of the stream stays. */
static int sync_log(void)
{
    return weir_sync(log_stream, WEIR_DATA);
}

static void *run_timer(void *unused)
{
    struct timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    pthread_mutex_lock(&log_lock);
    while (!log_stopped) {
        next.tv_nsec += PERIOD_MS % 1000 * 1000000L;
        next.tv_sec += PERIOD_MS / 1000 + next.tv_nsec / 1000000000L;
        next.tv_nsec %= 1000000000L;
        while (!log_stopped && pthread_cond_timedwait(&log_stop, &log_lock, &next) != ETIMEDOUT)
            ;
        pthread_mutex_unlock(&log_lock);
        sync_log();
        pthread_mutex_lock(&log_lock);
    }
    pthread_mutex_unlock(&log_lock);
    return unused;
}

static int start_timer(void)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&log_stop, &attributes);
    return -pthread_create(&log_timer, NULL, run_timer, NULL);
}
%end

/* Returns 0 or a negative errno, like all functions of libweir. */
int log_open(const char *path)
{
    struct weir_options options = {
%if each
        .mode = WEIR_NONE,
%end
%if line
        .mode = WEIR_LINE,
        .buffer_bytes = @BUFFER@,
%end
%if gather
        .mode = WEIR_RECORD, /* a write(2) has whole records only */
        .buffer_bytes = @BUFFER@,
%end
%if sync_record|dsync
        .durability = WEIR_DATA, /* each record is on the device when the call returns */
%end
%if gather
%if timer
        .stale_ms = PERIOD_MS, /* pending bytes are written after at most this time */
%end
%end
%if threads
        .flags = WEIR_THREADS,
%end
%if line
%else
        .separator = WEIR_SEPARATOR_NONE, /* each call is a record; it has its newline */
%end
    };
    int result = weir_open(&log_stream, path, O_WRONLY | O_CREAT | O_APPEND, &options);
%if synced
    if (result == 0)
        result = weir_sync(log_stream, WEIR_WHOLE); /* the name of a new file, too */
%end
%if period
    if (result == 0)
        result = start_timer();
%end
%if synced
    if (result != 0 && log_stream) { /* log_close is only for a log that is open */
        weir_close(log_stream);
        log_stream = NULL;
    }
%end
    return result;
}

int log_record(const char *record, size_t bytes)
{
%if line
    ssize_t put = weir_write(log_stream, record, bytes);
    return put == (ssize_t)bytes ? 0 : put < 0 ? (int)put : -EIO;
%else
    ssize_t put = weir_putrec(log_stream, record, bytes);
%if group
    /* Group commit: one sync covers every record that was written before it began. */
    return put < 0 ? (int)put : weir_sync(log_stream, WEIR_DATA);
%else
    return put < 0 ? (int)put : 0;
%end
%end
}

int log_close(void)
{
%if period
    pthread_mutex_lock(&log_lock);
    log_stopped = 1;
    pthread_cond_signal(&log_stop);
    pthread_mutex_unlock(&log_lock);
    pthread_join(log_timer, NULL);
    int synced = sync_log(); /* the records since the last sync */
    int closed = weir_close(log_stream);
    return synced < 0 ? synced : closed;
%else
    return weir_close(log_stream);
%end
}

int main(int argc, char **argv)
{
    char *line = NULL;
    size_t capacity = 0;
    ssize_t bytes;
    if (argc != 2) {
        fprintf(stderr, "usage: log FILE\n");
        return 2;
    }
    int result = log_open(argv[1]);
    while (result == 0 && (bytes = getline(&line, &capacity, stdin)) > 0)
        result = log_record(line, (size_t)bytes);
    free(line);
    int read_error = ferror(stdin);
    if (read_error)
        perror("standard input");
    if (log_stream) {
        int closed = log_close();
        result = result != 0 ? result : closed;
    }
    if (result != 0) {
        fprintf(stderr, "%s: %s\n", argv[1], strerror(-result));
        return 1;
    }
    return read_error != 0;
}
