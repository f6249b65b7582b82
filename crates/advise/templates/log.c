/* Appends the lines of standard input to a file: @NAME@.
 * Build: cc -O2 -pthread -o log log.c      Use: log FILE < records
 * In a program of your own, call log_open, log_record with each record and its newline, and log_close. */
%if timer
#define _GNU_SOURCE
%else
#define _POSIX_C_SOURCE 200809L
%end
#include <errno.h>
#include <fcntl.h>
%if synced
#include <libgen.h>
%end
%if threads
#include <pthread.h>
%end
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
%if timer
#include <time.h>
%end
#include <unistd.h>

%if gather|line
#define BUFFER_BYTES @BUFFER@
%end
%if timer
#define PERIOD_MS @PERIOD_MS@
%end

static int log_fd = -1;
%if gather|line
static FILE *log_file;
static char log_buffer[BUFFER_BYTES]; /* with NULL, glibc's setvbuf ignores the size */
%end
%if gather
static size_t log_pending; /* bytes in the buffer */
%end
%if threads
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
%end
%if timer
static pthread_cond_t log_stop;
static pthread_t log_timer;
static int log_stopped, log_dirty, log_error; /* error: errno of a failed timer, returned by the next call */
%end
%if group
static pthread_cond_t log_synced = PTHREAD_COND_INITIALIZER;
static unsigned long log_written, log_durable; /* records */
static int log_syncing, log_error;
%end

%if synced
/* Syncs the directory of a new file: without it, a power cut can lose the file's name. */
static int sync_directory(const char *path)
{
    char *copy = strdup(path);
    int fd = copy ? open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    int result = fd >= 0 ? fsync(fd) : -1;
    if (fd >= 0)
        close(fd);
    free(copy);
    return result;
}

%end
%if gather
/* Writes the buffer. */
static int flush_buffer(void)
{
    log_pending = 0;
    return fflush(log_file) == 0 ? 0 : -1;
}

%end
%if timer
/* Writes what is pending, and with a sync forces it to the device. The timer calls this. */
static int sync_log(void)
{
    int result = 0;
    pthread_mutex_lock(&log_lock);
    int dirty = log_dirty;
    log_dirty = 0;
%if gather
    if (dirty)
        result = flush_buffer();
%end
    pthread_mutex_unlock(&log_lock);
%if period
    if (dirty && result == 0)
        result = fdatasync(log_fd); /* without the lock: records go on meanwhile */
%end
    if (result != 0) {
        int error = errno;
        pthread_mutex_lock(&log_lock);
        log_error = error;
        pthread_mutex_unlock(&log_lock);
    }
    return result;
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
    errno = pthread_create(&log_timer, NULL, run_timer, NULL);
    return errno == 0 ? 0 : -1;
}

%end
int log_open(const char *path)
{
%if dsync
    log_fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_DSYNC, 0666);
%else
    log_fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
%end
    if (log_fd < 0)
        return -1;
%if synced
    if (fsync(log_fd) != 0 || sync_directory(path) != 0)
        return -1;
%end
%if gather|line
    log_file = fdopen(log_fd, "a");
    if (!log_file)
        return -1;
%if line
    setvbuf(log_file, log_buffer, _IOLBF, sizeof log_buffer);
%else
    setvbuf(log_file, log_buffer, _IOFBF, sizeof log_buffer);
%end
%end
%if timer
    return start_timer();
%else
    return 0;
%end
}

%if each|gather|line
/* Writes all bytes: a signal or a nearly full disk can make a write short. */
static int write_all(const char *record, size_t bytes)
{
    while (bytes > 0) {
        ssize_t written = write(log_fd, record, bytes);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return -1;
        record += written;
        bytes -= (size_t)written;
    }
    return 0;
}

%end
%if group
/* Returns when the record is on the device. One thread syncs for all that have written meanwhile. */
int log_record(const char *record, size_t bytes)
{
    pthread_mutex_lock(&log_lock);
    if (!log_error && write_all(record, bytes) != 0)
        log_error = errno;
    unsigned long mine = ++log_written;
    while (!log_error && log_durable < mine) {
        if (log_syncing) {
            pthread_cond_wait(&log_synced, &log_lock);
            continue;
        }
        unsigned long covered = log_written;
        log_syncing = 1;
        pthread_mutex_unlock(&log_lock);
        int error = fdatasync(log_fd) == 0 ? 0 : errno;
        pthread_mutex_lock(&log_lock);
        log_syncing = 0;
        if (error)
            log_error = error;
        else
            log_durable = covered;
        pthread_cond_broadcast(&log_synced);
    }
    int error = log_error;
    pthread_mutex_unlock(&log_lock);
    errno = error;
    return error ? -1 : 0;
}
%else
%if gather
/* Appends a record to the buffer. A write(2) has whole records only, so that no other writer and no kill tears one. */
%else
/* Appends a record. */
%end
int log_record(const char *record, size_t bytes)
{
    int result = 0;
%if threads
    pthread_mutex_lock(&log_lock);
%end
%if timer
    if (log_error) {
        errno = log_error;
        result = -1;
    }
%end
%if gather
    if (result == 0 && log_pending + bytes > BUFFER_BYTES)
        result = flush_buffer();
    if (result == 0 && bytes > BUFFER_BYTES) {
        result = write_all(record, bytes); /* stdio would make two calls */
    } else if (result == 0) {
        if (fwrite(record, 1, bytes, log_file) != bytes)
            result = -1;
        log_pending += bytes;
    }
%end
%if line
    if (bytes > BUFFER_BYTES) /* stdio would make two calls */
        result = fflush(log_file) == 0 ? write_all(record, bytes) : -1;
    else if (fwrite(record, 1, bytes, log_file) != bytes || ferror(log_file)) /* glibc counts bytes that it could not write */
        result = -1;
%end
%if each
    if (result == 0)
        result = write_all(record, bytes);
%end
%if timer
    log_dirty = 1;
%end
%if threads
    pthread_mutex_unlock(&log_lock);
%end
%if sync_record
    if (result == 0)
        result = fdatasync(log_fd);
%end
    return result;
}
%end

int log_close(void)
{
    int result = 0;
%if timer
    pthread_mutex_lock(&log_lock);
    log_stopped = 1;
    pthread_cond_signal(&log_stop);
    pthread_mutex_unlock(&log_lock);
    pthread_join(log_timer, NULL);
    result = sync_log(); /* the records since the last sync */
    if (log_error) {
        errno = log_error;
        result = -1;
    }
%end
%if gather|line
    if (fclose(log_file) != 0)
        result = -1;
%else
    if (close(log_fd) != 0)
        result = -1;
%end
    return result;
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
    if (log_open(argv[1]) != 0) {
        perror(argv[1]);
        return 1;
    }
    while ((bytes = getline(&line, &capacity, stdin)) > 0)
        if (log_record(line, (size_t)bytes) != 0) {
            perror(argv[1]);
            return 1;
        }
    int read_error = ferror(stdin);
    if (read_error)
        perror("standard input");
    free(line);
    if (log_close() != 0) {
        perror(argv[1]);
        return 1;
    }
    return read_error != 0;
}
