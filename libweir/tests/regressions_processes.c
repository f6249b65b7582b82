/* regressions_processes.c: one test for each bug of the delay and of child processes that was found once. */
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
    check(pipe2(ends, O_NONBLOCK) == 0 && weir_fdopen(&s, ends[1], &options) == 0, "opens");
    weir_putc(s, 'a'); /* armed */
    weir_flush(s);
    weir_set_stale(s, 0);
    sleep_seconds(0.1); /* the timer sees that there is nothing for it */
    weir_set_stale(s, 20);
    check(read(ends[0], &byte, 1) == 1, "the first");
    weir_putc(s, 'b');
    sleep_seconds(0.5);
    check(read(ends[0], &byte, 1) == 1 && byte == 'b', "the delay counts again");
    weir_set_stale(s, 5000);
    weir_putc(s, 'c');
    weir_flush(s);
    check(read(ends[0], &byte, 1) == 1, "flushed");
    weir_set_stale(s, 20);
    weir_putc(s, 'd');
    sleep_seconds(0.5);
    check(read(ends[0], &byte, 1) == 1 && byte == 'd', "the new delay counts, not the old one");
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

static void child_leaves_the_parents_temporary(void)
{
    static const enum weir_on_fork all[] = {WEIR_FORK_EMPTY, WEIR_FORK_FLUSH, WEIR_FORK_KEEP};
    char path[] = "/tmp/weir-regression-XXXXXX", found[8] = "";
    close(mkstemp(path));
    for (int i = 0; i < 3; i++) {
        weir_stream *s;
        struct weir_options options = {.on_fork = all[i]};
        check(weir_open_replace(&s, path, &options) == 0, "begun");
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

/* Under the leak sanitizer also: what belongs to an open stream is not lost. */
static void exit_removes_the_temporary(void)
{
    char directory[] = "/tmp/weir-regression-XXXXXX", path[64];
    check(mkdtemp(directory) != NULL, "a directory");
    snprintf(path, sizeof path, "%s/file", directory);
    pid_t child = fork();
    if (child == 0) {
        weir_stream *s;
        weir_open_replace(&s, path, NULL);
        weir_put_str(s, "new");
        exit(0);
    }
    check(status_of(child) == 0 && rmdir(directory) == 0, "nothing is left in it");
}

static void child_reads_on_in_memory(void)
{
    weir_stream *s, *c;
    char *memory;
    weir_open_memory(&s, "abc", 3, NULL);
    weir_open_collector(&c, NULL);
    check(weir_getc(s) == 'a' && weir_put_str(c, "xy") == 2, "before");
    pid_t child = fork();
    if (child == 0)
        _exit(weir_getc(s) == 'b' && weir_putc(c, 'z') == 'z' && weir_memory(c, &memory) == 3 ? 0 : 1);
    check(status_of(child) == 0, "its memory is a copy, and no bytes are read or written twice");
    check(weir_getc(s) == 'b' && weir_memory(c, &memory) == 2, "the parent's is as it was");
    weir_close(s);
    weir_close(c);
}

static void kept_copy_leaves_the_position(void)
{
    char path[] = "/tmp/weir-regression-XXXXXX";
    int fd = mkstemp(path);
    unlink(path);
    check(write(fd, "0123456789", 10) == 10 && lseek(fd, 0, SEEK_SET) == 0, "a file");
    weir_stream *s = NULL;
    struct weir_options options = {.on_fork = WEIR_FORK_KEEP};
    weir_fdopen(&s, fd, &options);
    check(weir_getc(s) == '0', "read ahead");
    pid_t child = fork();
    if (child == 0)
        exit(0);
    check(status_of(child) == 0 && weir_fileno(s) == fd, "given back");
    check(lseek(fd, 0, SEEK_CUR) == 1, "once: at %d", (int)lseek(fd, 0, SEEK_CUR));
    weir_close(s);
}

/* ---- locks ---- */

static weir_stream *shared;
static _Atomic int inside, together;

static ssize_t write_alone(void *context, const void *from, size_t bytes)
{
    (void)context, (void)from;
    if (atomic_fetch_add(&inside, 1))
        together++;
    sleep_seconds(0.01);
    atomic_fetch_sub(&inside, 1);
    return (ssize_t)bytes;
}

static void *put_some(void *number)
{
    for (int i = 0; i < 5; i++)
        weir_putc(shared, 'x');
    return number;
}

/* A copy of the stream, made by no handler of fork(3): its lock was free, and whoever has it now is alive. */
static void threads_of_a_clone_take_turns(void)
{
    if (CHECK_SANITIZED) {
        check_skip("the sanitizer's threads do not survive clone(2)");
        return;
    }
    struct weir_callbacks callbacks = {.write = write_alone};
    struct weir_options options = {.mode = WEIR_NONE, .flags = WEIR_THREADS, .on_fork = WEIR_FORK_KEEP};
    check(weir_open_callbacks(&shared, &callbacks, NULL, &options) == 0, "opens");
    pid_t child = (pid_t)syscall(SYS_clone, (long)SIGCHLD, 0L, 0L, 0L, 0L);
    if (child == 0) {
        in_threads(3, put_some);
        _exit(together);
    }
    check(status_of(child) == 0, "two threads had the lock");
    weir_close(shared);
}

/* ---- all ---- */

static const struct {
    const char *name;
    void (*test)(void);
} tests[] = {
#define TEST(name) {#name, name}
    TEST(delay_off_and_on),
    TEST(child_leaves_the_parents_temporary),
    TEST(exit_removes_the_temporary),
    TEST(child_reads_on_in_memory),
    TEST(kept_copy_leaves_the_position),
    TEST(threads_of_a_clone_take_turns),
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
