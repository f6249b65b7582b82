/* ending.c: exit, exec and fork while other threads are inside calls. A call that was begun is completed: no line
 * is torn or lost, wherever the other thread is at that moment. Each test stops a thread at the place in question;
 * the Makefile links this program with wrappers for that. */
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

enum end { EXIT, EXEC, FORK, ENDS };
static const char *const end_names[] = {"exit", "exec", "fork"};
static const char line[] = "0123456789abcdefghijklmnopqrstuvwxyz---\n"; /* 40 bytes */
enum { LINE = sizeof line - 1, WRITERS = 3, GAP_MS = 200, HALF_MS = 50 };

static weir_stream *shared;
static struct weir__kernel real;
static int shared_fd;
static _Atomic int in_gap; /* threads that were in the place where they are stopped */
static _Atomic bool exec_begun;
static _Thread_local bool stops;

static void sleep_ms(int ms) { sleep_seconds(ms / 1000.0); }

static bool wait_for_gap(int ms)
{
    for (int i = 0; i < ms && !in_gap; i++)
        sleep_ms(1);
    return in_gap;
}

/* ---- the places ---- */

int __real_weir__drain_async(weir_stream *s);
int __wrap_weir__drain_async(weir_stream *s);
void __real_weir__before_exec(void);
void __wrap_weir__before_exec(void);

/* Between the drain of a full buffer and the copy of the bytes that did not fit: nothing is pending. */
int __wrap_weir__drain_async(weir_stream *s)
{
    int result = __real_weir__drain_async(s);
    if (stops) {
        in_gap = 1;
        sleep_ms(GAP_MS);
    }
    return result;
}

/* Between the flush and the exec. */
void __wrap_weir__before_exec(void)
{
    __real_weir__before_exec();
    if (exec_begun)
        wait_for_gap(GAP_MS);
}

/* In the middle of a write: the kernel has taken a part of the bytes. */
static ssize_t write_in_halves(int fd, const void *from, size_t bytes)
{
    if (!stops || bytes < 2)
        return real.write(fd, from, bytes);
    ssize_t first = real.write(fd, from, bytes / 2);
    in_gap++;
    sleep_ms(HALF_MS);
    ssize_t rest = real.write(fd, (const char *)from + bytes / 2, bytes - bytes / 2);
    return first + rest;
}

/* ---- the processes ---- */

static void open_shared(struct weir_options options)
{
    options.flags |= WEIR_THREADS | WEIR_KEEP_OPEN;
    if (weir_fdopen(&shared, shared_fd, &options) < 0)
        _exit(101);
}

static void start(int threads, void *(*work)(void *))
{
    pthread_t thread;
    for (int i = 0; i < threads; i++)
        if (pthread_create(&thread, NULL, work, NULL) != 0)
            _exit(102);
}

static off_t size_of(int fd)
{
    struct stat status;
    return fstat(fd, &status) == 0 ? status.st_size : -1;
}

/* Runs `process` in a child and returns its wait status. Its file must then consist of whole lines. */
static off_t whole_lines_of(void (*process)(enum end end), enum end end)
{
    shared_fd = nameless_file();
    fcntl(shared_fd, F_SETFL, O_APPEND);
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        process(end);
        _exit(103);
    }
    waitpid(child, &status, 0);
    check(status == 0, "ended with %x", (unsigned)status);
    off_t bytes = size_of(shared_fd);
    char is[LINE + 1];
    for (off_t at = 0; at < bytes; at += LINE) {
        ssize_t got = pread(shared_fd, is, LINE, at);
        check(got == LINE && memcmp(is, line, LINE) == 0, "torn at byte %lld of %lld", (long long)at, (long long)bytes);
    }
    close(shared_fd);
    return bytes / LINE;
}

static void end_by(enum end end)
{
    char *const arguments[] = {"true", NULL};
    if (end == EXIT)
        exit(0);
    if (end == EXEC)
        execv("/bin/true", arguments);
    pid_t child = fork();
    if (child == 0)
        _exit(size_of(shared_fd) != 2 * LINE); /* the flush comes before the fork */
    int status = -1;
    waitpid(child, &status, 0);
    _exit(status != 0);
}

/* ---- a thread fills the buffer ---- */

static void *write_two(void *unused)
{
    stops = true;
    weir_write(shared, line, LINE);
    weir_write(shared, line, LINE);
    return unused;
}

static void end_in_a_full_write(enum end end)
{
    open_shared((struct weir_options){.mode = WEIR_FULL, .buffer_bytes = 64, .on_fork = WEIR_FORK_FLUSH});
    start(1, write_two);
    wait_for_gap(10000);
    end_by(end);
}

/* ---- threads go on with writing ---- */

static void *write_on(void *unused)
{
    stops = exec_begun;
    for (;;)
        weir_printf(shared, "%s", line);
    return unused;
}

/* A handler that runs after the library's, because it was registered before. */
static void threads_go_on(void)
{
    start(WRITERS, write_on);
    if (!wait_for_gap(10000))
        _exit(104);
}

static void end_while_threads_write(enum end end)
{
    exec_begun = true;
    weir__kernel.write = write_in_halves;
    if (end == EXIT)
        atexit(threads_go_on);
    open_shared((struct weir_options){.mode = end == EXIT ? WEIR_FULL : WEIR_NONE});
    weir_printf(shared, "%s", line);
    if (end == EXEC)
        start(WRITERS, write_on);
    end_by(end);
}

/* ---- streams that are opened when all were flushed ---- */

static void *open_and_write(void *unused)
{
    stops = true;
    struct weir_options options = {.flags = WEIR_THREADS | WEIR_KEEP_OPEN, .buffer_bytes = 64};
    for (weir_stream *s; weir_fdopen(&s, shared_fd, &options) == 0;)
        weir_printf(s, "%s", line);
    return unused;
}

static void handler_that_opens(void)
{
    open_shared((struct weir_options){.mode = WEIR_FULL});
    weir_printf(shared, "%s", line);
    start(1, open_and_write); /* more than one would write into each other's halves */
    if (!wait_for_gap(10000))
        _exit(104);
}

static void open_at_exit(enum end end)
{
    weir_stream *other;
    weir__kernel.write = write_in_halves;
    atexit(handler_that_opens);
    weir_open(&other, "/dev/null", O_WRONLY, NULL);
    end_by(end);
}

/* ---- threads that the end waits for ---- */

static pthread_t writer;
static bool joins;

static void *write_some(void *unused)
{
    for (int i = 0; i < 3; i++) {
        sleep_ms(50);
        weir_printf(shared, "%s", line);
    }
    return unused;
}

/* Runs after the library's destructor: the order of those with one priority is that of linking. */
static __attribute__((destructor(101))) void join_writer(void)
{
    if (joins)
        pthread_join(writer, NULL);
}

static void join_at_the_very_end(enum end end)
{
    joins = true;
    open_shared((struct weir_options){.mode = WEIR_FULL});
    pthread_create(&writer, NULL, write_some, NULL);
    end_by(end);
}

static void *read_for_ever(void *from)
{
    weir_getc(from);
    return NULL;
}

static void exit_during_a_read(enum end end)
{
    int ends[2];
    weir_stream *in;
    struct weir_options options = {.flags = WEIR_THREADS};
    pthread_t thread;
    if (pipe(ends) != 0 || weir_fdopen(&in, ends[0], &options) < 0)
        _exit(105);
    open_shared((struct weir_options){.mode = WEIR_FULL});
    pthread_create(&thread, NULL, read_for_ever, in);
    while (!atomic_load(&weir__state(in)->in_read))
        sleep_ms(1);
    weir_printf(shared, "%s", line);
    end_by(end);
}

static void *fail_to_exec(void *unused)
{
    char *const arguments[] = {"none", NULL};
    for (int i = 0; i < 100; i++)
        if (execv("/no/such/program", arguments) != -1 || errno != ENOENT)
            _exit(106);
    return unused;
}

static void *write_hundred(void *unused)
{
    for (int i = 0; i < 100; i++)
        weir_printf(shared, "%s", line);
    return unused;
}

static void exec_that_fails(enum end end)
{
    pthread_t threads[2];
    open_shared((struct weir_options){.mode = WEIR_FULL, .buffer_bytes = 100});
    pthread_create(&threads[0], NULL, fail_to_exec, NULL);
    pthread_create(&threads[1], NULL, write_hundred, NULL);
    weir_lock(shared); /* its own lock is still its own after the failure */
    fail_to_exec(NULL);
    if (weir_trylock(shared) != 0 || weir__state(shared)->lock.depth != 1)
        _exit(107);
    weir_unlock(shared);
    weir_unlock(shared);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    end_by(end);
}

/* ---- the wait for a lock ---- */

static struct weir__lock lock;
static _Atomic bool stop;
static _Atomic int turns;

/* As threads that pass the lock on to each other: it is never free, and each change wakes the waiters. */
static void *pass_on(void *unused)
{
    static char owners[2];
    double end = seconds_now() + 1;
    for (int i = 0; !stop && seconds_now() < end; i = !i) {
        atomic_store(&lock.owner, (uintptr_t)&owners[i]);
        weir__lock_release_slow(&lock, 0);
    }
    atomic_store(&lock.owner, 0);
    weir__lock_release_slow(&lock, 0);
    return unused;
}

static void limit_is_by_the_clock(void)
{
    check_begin("the time limit of a lock is by the clock, not by the number of attempts");
    enum { LIMIT_MS = 20000 };
    static char owner;
    pthread_t thread;
    lock = (struct weir__lock){.owner = (uintptr_t)&owner};
    stop = false;
    pthread_create(&thread, NULL, pass_on, NULL);
    check(weir__timedlock(&lock, NULL, LIMIT_MS), "gave up long before the limit");
    stop = true;
    pthread_join(thread, NULL);
}

/* Takes the lock again as soon as it has released it. */
static void *hold_on(void *unused)
{
    while (!stop) {
        weir__lock(&lock, NULL);
        turns++;
        sleep_ms(1);
        weir__unlock(&lock);
    }
    return unused;
}

static void exit_gets_its_turn(void)
{
    check_begin("a waiter with a limit gets a lock that others take again and again");
    enum { TIMES = 20 };
    pthread_t threads[WRITERS];
    int all = 0;
    lock = (struct weir__lock){0};
    stop = false;
    for (int i = 0; i < WRITERS; i++)
        pthread_create(&threads[i], NULL, hold_on, NULL);
    for (int i = 0; i < TIMES; i++) {
        int before = turns;
        if (!check(weir__timedlock(&lock, NULL, 60000), "got it"))
            break;
        all += turns - before;
        weir__unlock(&lock);
        sleep_ms(5);
    }
    stop = true;
    for (int i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
    check(all < 2 * TIMES, "%d times, after %d turns of the others", (int)TIMES, all);
}

int main(void)
{
    real = weir__kernel;
    limit_is_by_the_clock();
    exit_gets_its_turn();
    if (CHECK_SANITIZED) {
        check_begin("ends of processes");
        check_skip("the sanitizer's own threads do not survive fork");
        return check_finish("ending");
    }
    for (int end = 0; end < ENDS; end++) {
        check_begin("%s while a thread has drained a full buffer and copies the rest", end_names[end]);
        check(whole_lines_of(end_in_a_full_write, (enum end)end) == 2, "both lines");
    }
    for (int end = EXIT; end <= EXEC; end++) {
        check_begin("%s while threads go on with writing", end_names[end]);
        check(whole_lines_of(end_while_threads_write, (enum end)end) >= 1, "the first line");
    }
    check_begin("streams opened after the flush at exit");
    check(whole_lines_of(open_at_exit, EXIT) >= 1, "the first line");
    check_begin("a destructor waits for a thread that writes");
    check(whole_lines_of(join_at_the_very_end, EXIT) == 3, "all lines");
    for (int end = EXIT; end <= EXEC; end++) {
        check_begin("%s while a thread is blocked in a read", end_names[end]);
        check(whole_lines_of(exit_during_a_read, (enum end)end) == 1, "the line");
    }
    check_begin("an exec that fails while threads write");
    check(whole_lines_of(exec_that_fails, EXIT) == 100, "all lines");
    return check_finish("ending");
}
