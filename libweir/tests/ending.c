/* ending.c: exit, exec and fork while other threads are inside calls. A call that has begun is completed: no line is
 * torn or lost, at any instruction of the other thread. Each test stops a thread at a critical instruction; the
 * Makefile links this program with wrappers for that. */
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
static _Atomic int in_gap; /* number of stops so far */
static _Atomic bool exec_begun;
static _Thread_local bool stops; /* this thread stops in the wrappers */

static void sleep_ms(int ms) { sleep_seconds(ms / 1000.0); }

static bool wait_for_gap(int ms)
{
    for (int i = 0; i < ms && !in_gap; i++)
        sleep_ms(1);
    return in_gap;
}

/* ---- the wrappers, which stop a thread ---- */

int __real_weir__drain_async(weir_stream *s);
int __wrap_weir__drain_async(weir_stream *s);
void __real_weir__before_exec(void);
void __wrap_weir__before_exec(void);

/* Stops between the drain of a full buffer and the copy of the bytes that did not fit: nothing is pending. */
int __wrap_weir__drain_async(weir_stream *s)
{
    int result = __real_weir__drain_async(s);
    if (stops) {
        in_gap = 1;
        sleep_ms(GAP_MS);
    }
    return result;
}

/* Stops between the flush and the exec. */
void __wrap_weir__before_exec(void)
{
    __real_weir__before_exec();
    if (exec_begun)
        wait_for_gap(GAP_MS);
}

/* Stops in the middle of a write: the kernel has a part of the bytes. */
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

/* Runs `process` in a child, checks that its file consists of whole lines, and returns their number. */
static off_t count_whole_lines(void (*process)(enum end end), enum end end)
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
    check(status == 0, "the child ended with %x", (unsigned)status);
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
        _exit(size_of(shared_fd) != 2 * LINE); /* fork(3) flushes before it forks */
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

/* ---- threads continue to write ---- */

static void *write_lines(void *unused)
{
    stops = exec_begun;
    for (;;)
        weir_printf(shared, "%s", line);
    return unused;
}

/* An exit handler that runs after the library's, because it was registered before. */
static void start_writers(void)
{
    start(WRITERS, write_lines);
    if (!wait_for_gap(10000))
        _exit(104);
}

static void end_while_threads_write(enum end end)
{
    exec_begun = true;
    weir__kernel.write = write_in_halves;
    if (end == EXIT)
        atexit(start_writers);
    open_shared((struct weir_options){.mode = end == EXIT ? WEIR_FULL : WEIR_NONE});
    weir_printf(shared, "%s", line);
    if (end == EXEC)
        start(WRITERS, write_lines);
    end_by(end);
}

/* ---- streams opened after the flush at exit ---- */

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
    start(1, open_and_write); /* one thread, because two would interleave their halves */
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

/* ---- threads that the end of the process waits for ---- */

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

/* Runs after the library's destructor: destructors of equal priority run in the order of linking. */
static __attribute__((destructor(101))) void join_writer(void)
{
    if (joins)
        pthread_join(writer, NULL);
}

static void join_in_destructor(enum end end)
{
    joins = true;
    open_shared((struct weir_options){.mode = WEIR_FULL});
    pthread_create(&writer, NULL, write_some, NULL);
    end_by(end);
}

static void *read_blocked(void *from)
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
    pthread_create(&thread, NULL, read_blocked, in);
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

static void failed_exec(enum end end)
{
    pthread_t threads[2];
    open_shared((struct weir_options){.mode = WEIR_FULL, .buffer_bytes = 100});
    pthread_create(&threads[0], NULL, fail_to_exec, NULL);
    pthread_create(&threads[1], NULL, write_hundred, NULL);
    weir_lock(shared); /* this thread still holds the lock after the failure */
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

/* Acts as threads that pass the lock on to each other: it is never free, and each change wakes the waiters. */
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

static void limit_is_measured_in_time(void)
{
    check_begin("the limit of a wait for a lock is a time, not a number of attempts");
    enum { LIMIT_MS = 20000 };
    static char owner;
    pthread_t thread;
    lock = (struct weir__lock){.owner = (uintptr_t)&owner};
    stop = false;
    pthread_create(&thread, NULL, pass_on, NULL);
    check(weir__timedlock(&lock, NULL, LIMIT_MS), "timed out long before the limit");
    stop = true;
    pthread_join(thread, NULL);
}

/* Takes the lock again as soon as it has released it. */
static void *relock(void *unused)
{
    while (!stop) {
        weir__lock(&lock, NULL);
        turns++;
        sleep_ms(1);
        weir__unlock(&lock);
    }
    return unused;
}

static void limited_waiter_gets_the_lock(void)
{
    check_begin("a waiter with a time limit gets a lock that other threads take repeatedly");
    enum { TIMES = 20 };
    pthread_t threads[WRITERS];
    int all = 0;
    lock = (struct weir__lock){0};
    stop = false;
    for (int i = 0; i < WRITERS; i++)
        pthread_create(&threads[i], NULL, relock, NULL);
    for (int i = 0; i < TIMES; i++) {
        int before = turns;
        if (!check(weir__timedlock(&lock, NULL, 60000), "timed out"))
            break;
        all += turns - before;
        weir__unlock(&lock);
        sleep_ms(5);
    }
    stop = true;
    for (int i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
    check(all < 2 * TIMES, "%d times, after %d turns of other threads", (int)TIMES, all);
}

int main(void)
{
    real = weir__kernel;
    limit_is_measured_in_time();
    limited_waiter_gets_the_lock();
    if (CHECK_SANITIZED) {
        check_begin("all other tests");
        check_skip("the sanitizer's own threads do not survive fork");
        return check_finish("ending");
    }
    for (int end = 0; end < ENDS; end++) {
        check_begin("%s while a thread has drained a full buffer and copies the rest", end_names[end]);
        check(count_whole_lines(end_in_a_full_write, (enum end)end) == 2, "not both lines");
    }
    for (int end = EXIT; end <= EXEC; end++) {
        check_begin("%s while threads write", end_names[end]);
        check(count_whole_lines(end_while_threads_write, (enum end)end) >= 1, "no line");
    }
    check_begin("streams opened after the flush at exit");
    check(count_whole_lines(open_at_exit, EXIT) >= 1, "no line");
    check_begin("a destructor waits for a thread that writes");
    check(count_whole_lines(join_in_destructor, EXIT) == 3, "not all three lines");
    for (int end = EXIT; end <= EXEC; end++) {
        check_begin("%s while a thread is blocked in a read", end_names[end]);
        check(count_whole_lines(exit_during_a_read, (enum end)end) == 1, "not one line");
    }
    check_begin("a failed exec while threads write");
    check(count_whole_lines(failed_exec, EXIT) == 100, "not all 100 lines");
    return check_finish("ending");
}
