/* ending_wait.c: exit waits for a call of another thread as long as that thread can go on, however late it gets a processor,
 * and a short time for one that sleeps. A thread that computes stands for one that waits for a processor: the kernel
 * reports both as running. */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../src/private.h"
#include "support/check.h"

static const char line[] = "0123456789abcdefghijklmnopqrstuvwxyz---\n"; /* 40 bytes */
enum { LINE = sizeof line - 1, LONGER_MS = 2 * WEIR__LOCK_TIMEOUT_MS + 500, PIPE_LINE = 400000 };

static weir_stream *shared;
static struct weir__kernel real;
static _Atomic int begun, ended;
static bool computes_at_exit;
static _Thread_local bool loses_processor;

/* Uses the processor for `ms` milliseconds of time. */
static void compute(int ms)
{
    double end = seconds_now() + ms / 1000.0;
    while (seconds_now() < end)
        continue;
}

/* The kernel has a half of the bytes when the thread loses its processor. */
static ssize_t write_late(int fd, const void *from, size_t bytes)
{
    if (bytes < 2 || atomic_fetch_add(&begun, 1))
        return real.write(fd, from, bytes);
    ssize_t first = real.write(fd, from, bytes / 2);
    compute(LONGER_MS);
    ssize_t rest = real.write(fd, (const char *)from + bytes / 2, bytes - bytes / 2);
    return first + rest;
}

/* A write that is in two parts, if it is not ended by exit_group(2) in between. */
static ssize_t write_in_halves(int fd, const void *from, size_t bytes)
{
    ssize_t first = real.write(fd, from, bytes / 2);
    begun = 1;
    sleep_seconds(0.02);
    return first + real.write(fd, (const char *)from + bytes / 2, bytes - bytes / 2);
}

static void *write_one(void *unused)
{
    weir_printf(shared, "%s", line);
    ended = 1;
    return unused;
}

static void *write_lines(void *unused)
{
    for (;;)
        weir_printf(shared, "%s", line);
    return unused;
}

/* The Makefile links this program with this wrapper. */
int __real_weir__drain_async(weir_stream *s);
int __wrap_weir__drain_async(weir_stream *s);

/* The thread loses its processor in the middle of a call, before it has slept in any. */
int __wrap_weir__drain_async(weir_stream *s)
{
    if (loses_processor) {
        begun = 1;
        compute(LONGER_MS);
    }
    return __real_weir__drain_async(s);
}

static void *write_two(void *unused)
{
    loses_processor = unused != NULL;
    weir_printf(shared, "%s", line);
    weir_printf(shared, "%s", line);
    weir_flush(shared);
    return unused;
}

/* Runs `process` in a child with a file or a pipe, and returns the status. */
static int run(void (*process)(int fd), int fd)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        alarm(120);
        process(fd);
        _exit(103);
    }
    waitpid(child, &status, 0);
    return status;
}

static void check_whole_lines(int fd, int least)
{
    char is[LINE];
    off_t bytes = size_of(fd);
    check(bytes >= least * LINE, "%lld bytes", (long long)bytes);
    for (off_t at = 0; at < bytes; at += LINE)
        check(pread(fd, is, LINE, at) == LINE && memcmp(is, line, LINE) == 0, "torn at byte %lld", (long long)at);
}

static void open_shared(int fd, struct weir_options options)
{
    options.flags |= WEIR_KEEP_OPEN;
    if (weir_fdopen(&shared, fd, &options) < 0)
        _exit(101);
}

static void exit_when_begun(void)
{
    while (!begun)
        sleep_seconds(0.001);
    exit(0);
}

static void exit_during_a_late_write(int fd)
{
    pthread_t thread;
    weir__kernel.write = write_late;
    open_shared(fd, (struct weir_options){.mode = WEIR_LINE, .flags = WEIR_THREADS});
    pthread_create(&thread, NULL, write_one, NULL);
    exit_when_begun();
}

static void *own_stream(void *fd)
{
    open_shared((int)(intptr_t)fd, (struct weir_options){.mode = WEIR_LINE});
    return write_one(NULL);
}

static void exit_during_a_late_write_of_an_own_stream(int fd)
{
    pthread_t thread;
    weir__kernel.write = write_late;
    pthread_create(&thread, NULL, own_stream, (void *)(intptr_t)fd);
    exit_when_begun();
}

/* The second thread has the memory of the first one, which has ended: its ID is no longer that of a thread. */
static void start_one_after_another(int fd, bool in_a_child)
{
    pthread_t thread;
    int status = -1;
    open_shared(fd, (struct weir_options){.mode = WEIR_FULL, .flags = WEIR_THREADS, .buffer_bytes = 64});
    pthread_create(&thread, NULL, write_two, NULL);
    pthread_join(thread, NULL);
    if (in_a_child && fork() != 0) {
        wait(&status);
        exit(status != 0);
    }
    pthread_create(&thread, NULL, write_two, shared);
    exit_when_begun();
}

static void exit_during_the_first_call_of_a_thread(int fd) { start_one_after_another(fd, false); }

static void exit_during_the_first_call_after_fork(int fd) { start_one_after_another(fd, true); }

/* Runs after the library's destructor: destructors of equal priority run in the order of linking. The exiting thread gets no
 * processor before it ends the process. */
static __attribute__((destructor(101))) void compute_at_exit(void)
{
    if (computes_at_exit)
        compute(LONGER_MS);
}

static void exit_late(int fd)
{
    pthread_t thread;
    computes_at_exit = true;
    weir__kernel.write = write_in_halves;
    open_shared(fd, (struct weir_options){.mode = WEIR_LINE, .flags = WEIR_THREADS});
    for (int i = 0; i < 3; i++)
        pthread_create(&thread, NULL, write_lines, NULL);
    exit_when_begun();
}

/* ---- pipes ---- */

static void *write_long(void *unused)
{
    char *text = malloc(PIPE_LINE);
    memset(text, 'x', PIPE_LINE - 1);
    text[PIPE_LINE - 1] = '\n';
    begun = 1;
    weir_write(shared, text, PIPE_LINE);
    free(text);
    return unused;
}

static void exit_during_a_write_to_a_pipe(int fd)
{
    pthread_t thread;
    open_shared(fd, (struct weir_options){.mode = WEIR_LINE, .flags = WEIR_THREADS});
    pthread_create(&thread, NULL, write_long, NULL);
    while (!begun || weir__state(shared)->writer == 0)
        sleep_seconds(0.001);
    sleep_seconds(0.05);
    exit(0);
}

/* Reads a page at a time, each with a pause that is shorter than the wait. All pauses together are longer. */
static void *read_slowly(void *ends)
{
    static char page[4096];
    static size_t total;
    total = 0;
    close(((int *)ends)[1]);
    for (ssize_t got; (got = read(((int *)ends)[0], page, sizeof page)) > 0; total += (size_t)got)
        sleep_seconds(0.05);
    return &total;
}

static void with_a_slow_reader(const char *name, void (*process)(int fd), size_t bytes)
{
    int ends[2];
    check_begin("%s", name);
    check(pipe(ends) == 0, "pipe");
    pid_t child = fork();
    if (child == 0) {
        alarm(120);
        close(ends[0]);
        process(ends[1]);
    }
    size_t *total = read_slowly(ends);
    int status = -1;
    waitpid(child, &status, 0);
    check(status == 0 && *total == bytes, "status %x, %zu bytes", (unsigned)status, *total);
    close(ends[0]);
}

static void without_a_reader(void)
{
    int ends[2];
    check_begin("exit during a write to a full pipe without a reader");
    check(pipe(ends) == 0, "pipe");
    double start = seconds_now();
    int status = run(exit_during_a_write_to_a_pipe, ends[1]);
    double took = seconds_now() - start;
    check(status == 0 && took < 25, "status %x after %.1f s", (unsigned)status, took);
    close(ends[0]);
    close(ends[1]);
}

/* ---- threads that wait for locks ---- */

static weir_stream *first, *second;
static _Atomic int holders;
static bool waits_at_exit;

/* Holds the lock of one stream with a part of a line in it, and waits for the lock of the other. */
static void hold_and_wait(weir_stream *held, weir_stream *wanted)
{
    weir_lock(held);
    weir_write(held, line, LINE / 2);
    holders++;
    while (holders < 2)
        sleep_seconds(0.001);
    weir_lock(wanted);
    weir_write(held, line + LINE / 2, LINE - LINE / 2);
    weir_unlock(wanted);
    weir_unlock(held);
}

static void *hold_second(void *unused)
{
    hold_and_wait(second, first);
    return unused;
}

static void *hold_first(void *unused)
{
    hold_and_wait(first, second);
    return unused;
}

static void open_two(int fd)
{
    open_shared(fd, (struct weir_options){.mode = WEIR_FULL, .flags = WEIR_THREADS});
    second = shared;
    open_shared(fd, (struct weir_options){.mode = WEIR_FULL, .flags = WEIR_THREADS});
    first = shared;
}

/* Two threads, or this one and another, hold a lock each and wait for the other's. */
static void exit_after_a_deadlock(int fd)
{
    pthread_t thread;
    open_two(fd);
    pthread_create(&thread, NULL, hold_second, NULL);
    if (waits_at_exit) {
        weir_lock(first);
        holders++;
    } else {
        pthread_create(&thread, NULL, hold_first, NULL);
    }
    while (holders < 2 || !atomic_load(&weir__state(first)->lock.waiters))
        sleep_seconds(0.001);
    exit(0);
}

static void after_a_deadlock(bool of_this_thread)
{
    check_begin("exit while %s", of_this_thread ? "it and another thread wait for each other's stream"
                                                : "two threads wait for each other's stream");
    int fd = nameless_file();
    waits_at_exit = of_this_thread;
    double start = seconds_now();
    int status = run(exit_after_a_deadlock, fd);
    double took = seconds_now() - start;
    check(status == 0 && took < 25, "status %x after %.1f s", (unsigned)status, took);
    close(fd);
}

static void *write_long_locked(void *unused)
{
    weir_lock(first);
    shared = first;
    write_long(NULL);
    weir_unlock(first);
    return unused;
}

static void *wait_for_first(void *unused)
{
    holders = 1;
    hold_and_wait(second, first);
    return unused;
}

/* The exit waits for `second`, whose owner waits for the lock of `first`, whose owner writes to a slow reader. */
static void exit_during_a_wait_for_a_writer(int fd)
{
    pthread_t thread;
    open_two(fd);
    pthread_create(&thread, NULL, write_long_locked, NULL);
    while (!begun || weir__state(first)->writer == 0)
        sleep_seconds(0.001);
    pthread_create(&thread, NULL, wait_for_first, NULL);
    while (holders < 2 || !atomic_load(&weir__state(first)->lock.waiters))
        sleep_seconds(0.001);
    exit(0);
}

int main(void)
{
    real = weir__kernel;
    if (CHECK_SANITIZED) {
        check_begin("all tests");
        check_skip("the sanitizer's own threads do not survive fork");
        return check_finish("ending_wait");
    }
    static const struct {
        const char *name;
        void (*process)(int fd);
        int lines;
    } cases[] = {
        {"exit while a thread that writes gets no processor", exit_during_a_late_write, 1},
        {"exit while a thread gets no processor in a write to its own stream", exit_during_a_late_write_of_an_own_stream, 1},
        {"exit while a thread gets no processor in its first call", exit_during_the_first_call_of_a_thread, 4},
        {"exit of a child while a thread gets no processor in its first call", exit_during_the_first_call_after_fork, 4},
        {"exit whose thread gets no processor before the end", exit_late, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check_begin("%s", cases[i].name);
        int fd = nameless_file();
        fcntl(fd, F_SETFL, O_APPEND);
        int status = run(cases[i].process, fd);
        check(status == 0, "the child ended with %x", (unsigned)status);
        check_whole_lines(fd, cases[i].lines);
        close(fd);
    }
    with_a_slow_reader("exit during a write to a pipe whose reader is slow", exit_during_a_write_to_a_pipe, PIPE_LINE);
    without_a_reader();
    after_a_deadlock(false);
    after_a_deadlock(true);
    with_a_slow_reader("exit while a thread waits for the lock of one with a slow reader", exit_during_a_wait_for_a_writer,
                       PIPE_LINE + LINE);
    return check_finish("ending_wait");
}
