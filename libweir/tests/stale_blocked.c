/* stale_blocked.c: the bounded delay while a file is locked by another process, while a stream is locked for long, and
 * while the timer is blocked in a write; and a byte that is published after the timer has stopped its regular checks. */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../src/private.h"
#include "support/check.h"

#define SLACK_S (CHECK_SANITIZED ? 1.0 : 0.3)
#define DEADLINE_S 20

static bool arrives(int fd, double seconds)
{
    struct pollfd in = {.fd = fd, .events = POLLIN};
    char byte;
    return poll(&in, 1, (int)(seconds * 1000)) == 1 && read(fd, &byte, 1) == 1;
}

static weir_stream *open_pipe(int ends[2], unsigned stale_ms)
{
    weir_stream *s = NULL;
    struct weir_options options = {.mode = WEIR_FULL, .stale_ms = stale_ms};
    check(pipe2(ends, O_CLOEXEC) == 0 && weir_fdopen(&s, ends[1], &options) == 0, "fdopen");
    return s;
}

/* ---- a file that another process has locked ---- */

static bool lock_file(int fd, short type)
{
    struct flock whole = {.l_type = type, .l_whence = SEEK_SET};
    return fcntl(fd, F_OFD_SETLK, &whole) == 0;
}

static void locked_file_delays_no_other_stream(void)
{
    check_begin("a file that another process has locked does not delay other streams");
    int ends[2], fd = nameless_file();
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int other = open(path, O_RDWR | O_CLOEXEC); /* a description of its own, as another process has */
    weir_stream *locked = NULL, *s = open_pipe(ends, 20);
    struct weir_options options = {.mode = WEIR_FULL, .stale_ms = 5, .flags = WEIR_LOCK_FILE};
    check(lock_file(other, F_WRLCK) && weir_fdopen(&locked, fd, &options) == 0, "lock and fdopen");
    check(weir_put_str(locked, "waits") == 5, "put_str");
    sleep_seconds(0.1); /* the timer meets the lock */
    for (int i = 0; i < 5; i++) {
        weir_putc(s, 'x');
        double start = seconds_now();
        if (!check(arrives(ends[0], 2), "the byte of the other stream does not arrive"))
            break;
        check(seconds_now() - start < 0.02 + SLACK_S, "it waited %.3f s", seconds_now() - start);
    }
    check(size_of(fd) == 0, "the timer wrote to the locked file");
    check(weir_close(s) == 0, "close of the other stream");
    lock_file(other, F_UNLCK);
    for (double end = seconds_now() + DEADLINE_S; size_of(fd) != 5 && seconds_now() < end;)
        sleep_seconds(0.001);
    check(size_of(fd) == 5, "the bytes are not written after the unlock");
    check(weir_close(locked) == 0, "close");
    close(other);
    close(ends[0]);
}

/* ---- a stream that is locked for long ---- */

/* Returns how often the other threads of the process went to sleep. */
static long sleeps_of_other_threads(void)
{
    long all = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *e; (e = readdir(tasks)) != NULL;) {
        char path[300], line[200];
        long count;
        if (atoi(e->d_name) <= 0 || atoi(e->d_name) == (int)syscall(SYS_gettid))
            continue;
        snprintf(path, sizeof path, "/proc/self/task/%s/status", e->d_name);
        FILE *f = fopen(path, "r");
        while (f && fgets(line, sizeof line, f))
            if (sscanf(line, "voluntary_ctxt_switches: %ld", &count) == 1)
                all += count;
        if (f)
            fclose(f);
    }
    closedir(tasks);
    return all;
}

static void long_lock_does_not_keep_the_timer_busy(void)
{
    check_begin("the timer sleeps while a stream is locked for long");
    enum { STALE_MS = 20, LOCKED_MS = 500 };
    int ends[2];
    weir_stream *s = open_pipe(ends, STALE_MS);
    weir_putc(s, 'x'); /* starts the timer */
    check(arrives(ends[0], 5), "the first byte does not arrive");
    weir_lock(s);
    weir_putc(s, 'y');
    double start = seconds_now();
    long before = sleeps_of_other_threads();
    sleep_seconds(LOCKED_MS / 1000.0);
    long sleeps = sleeps_of_other_threads() - before, limit = 20 + (long)((seconds_now() - start) * 1000 / STALE_MS) * 2;
    check(sleeps <= limit, "%ld wake-ups, more than %ld", sleeps, limit);
    weir_unlock(s);
    start = seconds_now();
    check(arrives(ends[0], 5), "the byte does not arrive after the unlock");
    check(seconds_now() - start < STALE_MS / 1000.0 + SLACK_S, "it waited %.3f s", seconds_now() - start);
    weir_close(s);
    close(ends[0]);
}

/* ---- a timer that is blocked in a write ---- */

static _Atomic bool writing, may_return, closed;
static _Atomic int written;

static ssize_t blocking_write(void *context, const void *from, size_t bytes)
{
    (void)context, (void)from;
    writing = true;
    for (double end = seconds_now() + DEADLINE_S; !may_return && seconds_now() < end;)
        sleep_seconds(0.001);
    written += (int)bytes;
    return (ssize_t)bytes;
}

static void *close_stream(void *s)
{
    weir_close(s);
    closed = true;
    return NULL;
}

/* The timer is inside a write of the stream that is closed: the bytes of that write are the stream's. */
static void close_waits_for_the_streams_own_write(void)
{
    check_begin("weir_close waits for a write of the timer on this stream, and on no other");
    int ends[2];
    pthread_t thread;
    weir_stream *blocked = NULL, *s = open_pipe(ends, 20);
    struct weir_callbacks callbacks = {.write = blocking_write};
    struct weir_options options = {.mode = WEIR_FULL, .stale_ms = 1};
    check(weir_open_callbacks(&blocked, &callbacks, NULL, &options) == 0, "open_callbacks");
    weir_put_str(blocked, "five!");
    for (double end = seconds_now() + DEADLINE_S; !writing && seconds_now() < end;)
        sleep_seconds(0.001);
    check(writing, "the timer does not write");
    weir_putc(s, 'x');
    check(weir_close(s) == 0 && written == 0, "the close of another stream waited for the timer's write");
    check(arrives(ends[0], 5), "the other stream's byte does not arrive");
    pthread_create(&thread, NULL, close_stream, blocked);
    sleep_seconds(0.1);
    check(!closed, "the stream is closed during the timer's write");
    may_return = true;
    pthread_join(thread, NULL);
    check(closed && written == 5, "%d bytes were written", (int)written);
    close(ends[0]);
}

/* ---- a byte that is published late ---- */

/* Acts as a thread that the kernel stops in weir_putc, between the comparison with the limit and the store. */
static void late_byte_arrives(void)
{
    check_begin("a byte that is published after the timer has stopped its regular checks");
    int ends[2];
    weir_stream *s = open_pipe(ends, 20);
    weir_putc(s, 'x');
    check(arrives(ends[0], 5), "the first byte does not arrive");
    uint64_t at = WEIR_LOAD(&s->head.written);
    check(at < WEIR_LOAD(&s->limit), "the inline call is not open");
    for (double end = seconds_now() + DEADLINE_S; WEIR_LOAD(&s->limit) && seconds_now() < end;)
        sleep_seconds(0.001);
    check(WEIR_LOAD(&s->limit) == 0, "the timer does not stop its checks");
    *(char *)(uintptr_t)at = 'y';
    WEIR_PUBLISH(&s->head.written, at + 1);
    double start = seconds_now();
    check(arrives(ends[0], 5), "the byte does not arrive");
    check(seconds_now() - start < 0.1 + SLACK_S, "it waited %.3f s", seconds_now() - start);
    weir_close(s);
    close(ends[0]);
}

int main(void)
{
    alarm(300); /* ends the test if a call hangs */
    locked_file_delays_no_other_stream();
    long_lock_does_not_keep_the_timer_busy();
    close_waits_for_the_streams_own_write();
    late_byte_arrives();
    return check_finish("stale_blocked");
}
