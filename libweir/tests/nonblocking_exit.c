/* nonblocking_exit.c: exit, exec and daemon wait for the reader of a non-blocking descriptor, for a limited time. No function
 * could return the error of bytes that are lost there. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../src/private.h"
#include "support/check.h"

enum { LINES = 30000, SLOW_US = 1200000 };

enum ending { BY_EXIT, BY_EXEC, BY_DAEMON, ENDINGS };
static const char *const ending_names[] = {"exit", "exec", "daemon"};

static void end_process(enum ending ending)
{
    char *const arguments[] = {"true", NULL};
    if (ending == BY_EXIT)
        exit(0);
    if (ending == BY_EXEC)
        execvp("true", arguments);
    _exit(daemon(1, 1) != 0);
}

static void write_lines(int fd, struct weir_options options, enum ending ending)
{
    weir_stream *s;
    if (fcntl(fd, F_SETFL, O_NONBLOCK) != 0 || weir_fdopen(&s, fd, &options) != 0)
        _exit(1);
    for (int i = 0; i < LINES; i++)
        if (weir_printf(s, "line %d\n", i) < 0)
            _exit(2);
    end_process(ending);
}

/* Reads to the end. Returns the number of lines, or -1 if one of them is not the next one. */
static int count_lines(int fd)
{
    weir_stream *s;
    char *record, expected[30];
    int count = 0;
    ssize_t bytes;
    if (weir_fdopen(&s, fd, NULL) != 0)
        return -1;
    while ((bytes = weir_getrec(s, &record)) > 0) {
        int length = snprintf(expected, sizeof expected, "line %d\n", count++);
        if (bytes != length || memcmp(record, expected, (size_t)length) != 0)
            return -1;
    }
    weir_close(s);
    return count;
}

static void slow_reader(bool is_socket, unsigned flags, enum weir_mode mode, enum ending ending)
{
    check_begin("a slow reader of a %s, flags %u, mode %d, %s", is_socket ? "socket" : "pipe", flags, (int)mode, ending_names[ending]);
    int ends[2], status = -1;
    struct weir_options options = {.flags = flags, .mode = mode, .buffer_bytes = 1 << 20};
    if ((is_socket ? socketpair(AF_UNIX, SOCK_STREAM, 0, ends) : pipe(ends)) != 0)
        abort();
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        write_lines(ends[1], options, ending);
    }
    close(ends[1]);
    usleep(SLOW_US);
    int lines = count_lines(ends[0]);
    waitpid(child, &status, 0);
    check(lines == LINES && status == 0, "%d lines, status %d", lines, status);
}

/* ---- a reader that takes nothing ---- */

static int polls, polled_ms;

static int never_ready(struct pollfd *fds, nfds_t count, int timeout_ms)
{
    (void)fds;
    (void)count;
    polls++;
    polled_ms = timeout_ms;
    return 0;
}

static void exit_without_reader(int fd)
{
    weir_stream *s;
    struct weir_options options = {.buffer_bytes = 1 << 20};
    fcntl(fd, F_SETFL, O_NONBLOCK);
    weir_fdopen(&s, fd, &options);
    for (int i = 0; i < LINES; i++)
        weir_printf(s, "line %d\n", i);
    weir__kernel.poll = never_ready;
    weir__at_exit();
    _exit(polls != 1 || polled_ms < 29000 || polled_ms > 30000);
}

static void no_reader(void)
{
    check_begin("a reader that takes nothing");
    int ends[2], status = -1;
    if (pipe(ends) != 0)
        abort();
    pid_t child = fork();
    if (child == 0)
        exit_without_reader(ends[1]);
    waitpid(child, &status, 0);
    check(status == 0, "exit gives up after one wait of 30 seconds: %x", (unsigned)status);
    close(ends[0]);
    close(ends[1]);
}

/* The reader has closed the pipe meanwhile: exit does not wait. */
static void reader_has_gone(void)
{
    check_begin("the reader has gone");
    int ends[2], status = -1;
    if (pipe(ends) != 0)
        abort();
    double start = seconds_now();
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        signal(SIGPIPE, SIG_IGN);
        write_lines(ends[1], (struct weir_options){.buffer_bytes = 1 << 20}, BY_EXIT);
    }
    close(ends[1]);
    usleep(200000);
    close(ends[0]);
    waitpid(child, &status, 0);
    check(status == 0 && seconds_now() - start < 20, "status %x", (unsigned)status);
}

int main(void)
{
    alarm(120);
    for (int ending = 0; ending < ENDINGS; ending++)
        slow_reader(false, 0, WEIR_FULL, (enum ending)ending);
    slow_reader(true, 0, WEIR_FULL, BY_EXIT);
    slow_reader(false, WEIR_THREADS, WEIR_FULL, BY_EXIT);
    slow_reader(false, 0, WEIR_RECORD, BY_EXIT);
    slow_reader(false, WEIR_THREADS, WEIR_RECORD, BY_EXEC);
    no_reader();
    reader_has_gone();
    return check_finish("nonblocking_exit");
}
