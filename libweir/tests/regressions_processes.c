/* regressions_processes.c: one test for each fixed bug of the bounded delay and of child processes. */
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir.h>

#include "support/check.h"

/* ---- the delay ---- */

static void delay_off_and_on(void)
{
    int ends[2];
    weir_stream *s = NULL;
    char byte;
    struct weir_options options = {.mode = WEIR_FULL, .stale_ms = 20};
    check(pipe2(ends, O_NONBLOCK) == 0 && weir_fdopen(&s, ends[1], &options) == 0, "fdopen");
    weir_putc(s, 'a'); /* arms the timer */
    weir_flush(s);
    weir_set_stale(s, 0);
    sleep_seconds(0.1); /* the timer thread finds no pending bytes */
    weir_set_stale(s, 20);
    check(read(ends[0], &byte, 1) == 1, "read the first byte");
    weir_putc(s, 'b');
    sleep_seconds(0.5);
    check(read(ends[0], &byte, 1) == 1 && byte == 'b', "the delay works again");
    weir_set_stale(s, 5000);
    weir_putc(s, 'c');
    weir_flush(s);
    check(read(ends[0], &byte, 1) == 1, "read the flushed byte");
    weir_set_stale(s, 20);
    weir_putc(s, 'd');
    sleep_seconds(0.5);
    check(read(ends[0], &byte, 1) == 1 && byte == 'd', "the new delay applies");
    weir_close(s);
    close(ends[0]);
}

/* ---- children ---- */

static int status_of(pid_t child)
{
    int status = -1;
    waitpid(child, &status, 0);
    return status;
}

static void child_keeps_the_parents_temporary_file(void)
{
    static const enum weir_on_fork all[] = {WEIR_FORK_EMPTY, WEIR_FORK_FLUSH, WEIR_FORK_KEEP};
    char path[] = "/tmp/weir-regression-XXXXXX", found[8] = "";
    close(mkstemp(path));
    for (int i = 0; i < 3; i++) {
        weir_stream *s;
        struct weir_options options = {.on_fork = all[i]};
        check(weir_open_replace(&s, path, &options) == 0, "open_replace");
        weir_put_str(s, "new");
        pid_t child = fork();
        if (child == 0)
            _exit(i == 1 ? weir_replace(s) == 0 : weir_close(s) != 0 && all[i] != WEIR_FORK_KEEP);
        check(status_of(child) == 0, "the child closes its copy (%d)", i);
        check(weir_replace(s) == 0, "the parent replaces (%d)", i);
        int fd = open(path, O_RDONLY);
        ssize_t got = read(fd, found, 8);
        check(got == 3 || (all[i] == WEIR_FORK_KEEP && got == 6), "%zd bytes (%d)", got, i);
        close(fd);
    }
    unlink(path);
}

/* With the leak sanitizer it also checks that the memory of an open stream is reachable at exit. */
static void exit_removes_the_temporary_file(void)
{
    char directory[] = "/tmp/weir-regression-XXXXXX", path[64];
    check(mkdtemp(directory) != NULL, "mkdtemp");
    snprintf(path, sizeof path, "%s/file", directory);
    pid_t child = fork();
    if (child == 0) {
        weir_stream *s;
        weir_open_replace(&s, path, NULL);
        weir_put_str(s, "new");
        exit(0);
    }
    check(status_of(child) == 0 && rmdir(directory) == 0, "exit left a file");
}

static void memory_streams_in_a_child(void)
{
    weir_stream *s, *c;
    char *memory;
    weir_open_memory(&s, "abc", 3, NULL);
    weir_open_collector(&c, NULL);
    check(weir_getc(s) == 'a' && weir_put_str(c, "xy") == 2, "read and write before the fork");
    pid_t child = fork();
    if (child == 0)
        _exit(weir_getc(s) == 'b' && weir_putc(c, 'z') == 'z' && weir_memory(c, &memory) == 3 ? 0 : 1);
    check(status_of(child) == 0, "the child has a copy and continues in it");
    check(weir_getc(s) == 'b' && weir_memory(c, &memory) == 2, "the parent's streams are unchanged");
    weir_close(s);
    weir_close(c);
}

static void child_with_kept_copy_does_not_move_the_position(void)
{
    char path[] = "/tmp/weir-regression-XXXXXX";
    int fd = mkstemp(path);
    unlink(path);
    check(write(fd, "0123456789", 10) == 10 && lseek(fd, 0, SEEK_SET) == 0, "cannot write the file");
    weir_stream *s = NULL;
    struct weir_options options = {.on_fork = WEIR_FORK_KEEP};
    weir_fdopen(&s, fd, &options);
    check(weir_getc(s) == '0', "read ahead");
    pid_t child = fork();
    if (child == 0)
        exit(0);
    check(status_of(child) == 0 && weir_fileno(s) == fd, "fileno");
    check(lseek(fd, 0, SEEK_CUR) == 1, "the position is %d", (int)lseek(fd, 0, SEEK_CUR));
    weir_close(s);
}

/* ---- locks ---- */

static weir_stream *shared;
static _Atomic int inside, overlaps;

static ssize_t write_exclusively(void *context, const void *from, size_t bytes)
{
    (void)context, (void)from;
    if (atomic_fetch_add(&inside, 1))
        overlaps++;
    sleep_seconds(0.01);
    atomic_fetch_sub(&inside, 1);
    return (ssize_t)bytes;
}

static void *put_bytes(void *number)
{
    for (int i = 0; i < 5; i++)
        weir_putc(shared, 'x');
    return number;
}

/* After clone(2) no handler of fork(3) resets the lock: it was free, and any later owner is a thread of the child. */
static void threads_after_clone_exclude_each_other(void)
{
    if (CHECK_SANITIZED) {
        check_skip("the sanitizer's threads do not survive clone(2)");
        return;
    }
    struct weir_callbacks callbacks = {.write = write_exclusively};
    struct weir_options options = {.mode = WEIR_NONE, .flags = WEIR_THREADS, .on_fork = WEIR_FORK_KEEP};
    check(weir_open_callbacks(&shared, &callbacks, NULL, &options) == 0, "fdopen");
    pid_t child = (pid_t)syscall(SYS_clone, (long)SIGCHLD, 0L, 0L, 0L, 0L);
    if (child == 0) {
        in_threads(3, put_bytes);
        _exit(overlaps);
    }
    check(status_of(child) == 0, "two threads held the lock");
    weir_close(shared);
}

/* ---- the tests ---- */

static const struct {
    const char *name;
    void (*test)(void);
} tests[] = {
#define TEST(name) {#name, name}
    TEST(delay_off_and_on),
    TEST(child_keeps_the_parents_temporary_file),
    TEST(exit_removes_the_temporary_file),
    TEST(memory_streams_in_a_child),
    TEST(child_with_kept_copy_does_not_move_the_position),
    TEST(threads_after_clone_exclude_each_other),
};

int main(int count, char **arguments)
{
    const char *only = count > 1 ? arguments[1] : NULL;
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        if (only && strcmp(only, tests[i].name) != 0)
            continue;
        check_begin("%s", tests[i].name);
        tests[i].test();
    }
    return check_finish("regressions_processes");
}
