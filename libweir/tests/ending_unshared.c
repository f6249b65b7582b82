/* ending_unshared.c: exit, exec, fork and weir_flush_all while other threads use streams of their own, without
 * WEIR_THREADS. Their bytes are written once, and what they have accepted is not lost. */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../src/private.h"
#include "support/check.h"

enum end { EXIT, EXEC, FORK, FLUSH_ALL, ENDS };
static const char *const end_names[] = {"exit", "exec", "fork", "weir_flush_all"};
enum { LINE_BYTES = 8, LINES = 100 };

static weir_stream *own; /* the worker's stream */
static struct weir__kernel real;
static int file_fd;
static _Atomic bool in_gap, go_on;
static _Thread_local bool is_worker;

static void sleep_ms(int ms) { sleep_seconds(ms / 1000.0); }

static void wait_for(_Atomic bool *flag)
{
    for (double end = seconds_now() + 20; !*flag && seconds_now() < end;)
        sleep_ms(1);
    if (!*flag)
        _exit(101);
}

static weir_stream *open_own(int fd, struct weir_options options)
{
    weir_stream *s;
    options.flags |= WEIR_KEEP_OPEN;
    if (weir_fdopen(&s, fd, &options) < 0)
        _exit(102);
    return s;
}

static void start(void *(*work)(void *), void *argument)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, argument) != 0)
        _exit(103);
}

/* Ends the process with status 0, in the way that is tested. */
static void end_by(enum end end)
{
    char *const arguments[] = {"true", NULL};
    if (end == EXIT)
        exit(0);
    if (end == EXEC)
        execv("/bin/true", arguments);
    if (end == FLUSH_ALL)
        _exit(weir_flush_all() != 0);
    int status = -1;
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    waitpid(child, &status, 0);
    _exit(status != 0); /* fork(3) has flushed the stream */
}

/* Runs `process` in a child. The file must then have lines with the numbers from 0 on, each once; the last one may be
 * incomplete if `torn`. Returns the number of whole lines. */
static off_t count_lines(void (*process)(enum end end), enum end end, bool torn)
{
    file_fd = nameless_file();
    in_gap = go_on = false;
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        process(end);
        _exit(104);
    }
    waitpid(child, &status, 0);
    check(status == 0, "the child ended with %x", (unsigned)status);
    off_t bytes = size_of(file_fd);
    char is[LINE_BYTES + 1] = "", expected[32];
    for (off_t at = 0; at < bytes; at += LINE_BYTES) {
        ssize_t got = pread(file_fd, is, LINE_BYTES, at);
        snprintf(expected, sizeof expected, "%07d\n", (int)(at / LINE_BYTES));
        bool whole = got == LINE_BYTES || (torn && got > 0);
        if (!check(whole && memcmp(is, expected, (size_t)got) == 0, "at byte %lld: \"%.*s\"", (long long)at, (int)got, is))
            break;
    }
    close(file_fd);
    return bytes / LINE_BYTES;
}

static void put_line(int number) { weir_printf(own, "%07d\n", number); }

/* ---- a worker is in the middle of a write ---- */

static ssize_t write_in_halves(int fd, const void *from, size_t bytes)
{
    if (!is_worker || bytes < 2)
        return real.write(fd, from, bytes);
    ssize_t first = real.write(fd, from, bytes / 2 - 3);
    in_gap = true;
    sleep_ms(100);
    return first + real.write(fd, (const char *)from + first, bytes - (size_t)first);
}

static void *write_lines(void *unused)
{
    is_worker = true;
    own = open_own(file_fd, (struct weir_options){.mode = WEIR_FULL, .buffer_bytes = 64, .on_fork = WEIR_FORK_FLUSH});
    for (int i = 0; i < 9; i++) /* the ninth line drains the buffer */
        put_line(i);
    pause();
    return unused;
}

static void end_during_a_write(enum end end)
{
    weir__kernel.write = write_in_halves;
    start(write_lines, NULL);
    wait_for(&in_gap);
    end_by(end);
}

/* ---- a worker is in weir_putc ---- */

/* Stops between the comparison with the limit and the store of the offset. */
static void *stop_in_putc(void *unused)
{
    own = open_own(file_fd, (struct weir_options){.mode = WEIR_FULL, .on_fork = WEIR_FORK_FLUSH});
    for (int i = 0; i < 5; i++)
        put_line(i);
    weir_put_str(own, "000000");
    uint64_t at = WEIR_LOAD(&own->head.written);
    if (at >= WEIR_LOAD(&own->limit))
        _exit(105);
    in_gap = true;
    wait_for(&go_on);
    *(char *)(uintptr_t)at = '5';
    WEIR_PUBLISH(&own->head.written, at + 1);
    weir_putc(own, '\n');
    in_gap = false;
    pause();
    return unused;
}

/* As an exit handler it runs after the library's, because main has registered it first. */
static bool resumes;

static void resume_worker(void)
{
    if (!resumes)
        return;
    go_on = true;
    for (int i = 0; i < 5000 && in_gap; i++)
        sleep_ms(1);
}

static void end_in_putc(enum end end)
{
    resumes = true;
    start(stop_in_putc, NULL);
    wait_for(&in_gap);
    if (end == FLUSH_ALL) {
        weir_flush_all();
        resume_worker();
    }
    end_by(end);
}

static void *put_bytes(void *unused)
{
    char line[32];
    own = open_own(file_fd, (struct weir_options){.mode = WEIR_FULL, .buffer_bytes = 4096});
    for (int i = 0;; i++) {
        snprintf(line, sizeof line, "%07d\n", i);
        for (int c = 0; c < LINE_BYTES; c++)
            weir_putc(own, line[c]);
        in_gap = true;
    }
    return unused;
}

static void end_at_any_time(enum end end)
{
    start(put_bytes, NULL);
    wait_for(&in_gap);
    sleep_ms(getpid() % 8);
    if (end == FLUSH_ALL)
        for (int i = 0; i < 100; i++)
            weir_flush_all();
    end_by(end);
}

/* ---- a worker waits, with pending bytes ---- */

static void *write_and_pause(void *unused)
{
    own = open_own(file_fd, (struct weir_options){.mode = WEIR_FULL, .on_fork = WEIR_FORK_FLUSH});
    for (int i = 0; i < LINES; i++)
        put_line(i);
    in_gap = true;
    pause();
    return unused;
}

static void end_while_it_waits(enum end end)
{
    start(write_and_pause, NULL);
    wait_for(&in_gap);
    end_by(end);
}

static weir_stream *socket_stream;
static int ends[2];

static void *read_socket(void *unused)
{
    struct weir_options options = {.mode = WEIR_FULL, .on_fork = WEIR_FORK_FLUSH};
    socket_stream = open_own(ends[0], options);
    weir_put_str(socket_stream, "question");
    weir_getc(socket_stream);
    return unused;
}

/* One thread blocks in a read of a stream that has pending bytes. */
static void end_during_a_read(enum end end)
{
    own = open_own(file_fd, (struct weir_options){.mode = WEIR_FULL, .on_fork = WEIR_FORK_FLUSH});
    put_line(0);
    start(read_socket, NULL);
    for (double limit = seconds_now() + 20; seconds_now() < limit; sleep_ms(1))
        if (*(weir_stream *volatile *)&socket_stream && atomic_load(&weir__state(socket_stream)->in_read))
            break;
    end_by(end);
}

static void bytes_of_a_blocked_reader(enum end end)
{
    check_begin("%s while a worker waits for an answer, with pending bytes", end_names[end]);
    char is[16] = "";
    check(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
    double begun = seconds_now();
    check(count_lines(end_during_a_read, end, false) == 1, "not one line");
    check(seconds_now() - begun < 0.8, "it took %.1f s", seconds_now() - begun);
    ssize_t got = recv(ends[1], is, sizeof is, MSG_DONTWAIT);
    check(got == 8 && memcmp(is, "question", 8) == 0, "the socket has %zd bytes", got);
    close(ends[0]);
    close(ends[1]);
}

/* ---- a worker that never ends its write ---- */

static void *fill_pipe(void *unused)
{
    char text[5000] = "";
    weir_stream *full = open_own(ends[1], (struct weir_options){.mode = WEIR_FULL, .buffer_bytes = 4096});
    for (int i = 0; i < 20; i++) /* a pipe takes 65536 bytes */
        weir_write(full, text, sizeof text);
    return unused;
}

static void end_with_a_blocked_writer(enum end end)
{
    if (pipe(ends) != 0)
        _exit(107);
    start(fill_pipe, NULL);
    struct pollfd full = {.fd = ends[1], .events = POLLOUT};
    for (double limit = seconds_now() + 20; poll(&full, 1, 0) != 0 && seconds_now() < limit;)
        sleep_ms(1);
    sleep_ms(50);
    own = open_own(file_fd, (struct weir_options){.mode = WEIR_FULL, .on_fork = WEIR_FORK_FLUSH});
    put_line(0);
    end_by(end);
}

/* ---- positions ---- */

static weir_stream *input;
static int read_byte;

static void *read_one(void *unused)
{
    read_byte = weir_getc(input);
    in_gap = true;
    wait_for(&go_on);
    read_byte = weir_getc(input);
    in_gap = false;
    return unused;
}

static void check_position(enum end end, bool by_worker)
{
    check_begin("%s after %s has read ahead", end_names[end], by_worker ? "a worker" : "this thread, with workers,");
    int fd = nameless_file(), status = -1;
    file_fd = nameless_file();
    in_gap = go_on = false;
    check(pwrite(fd, "abcdef", 6, 0) == 6, "pwrite");
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        input = open_own(fd, (struct weir_options){.on_fork = WEIR_FORK_FLUSH});
        start(by_worker ? read_one : write_and_pause, NULL);
        if (!by_worker)
            read_byte = weir_getc(input);
        wait_for(&in_gap);
        if (read_byte != 'a')
            _exit(108);
        end_by(end);
    }
    waitpid(child, &status, 0);
    check(status == 0, "the child ended with %x", (unsigned)status);
    off_t expected = by_worker || end == FORK || end == FLUSH_ALL ? 6 : 1;
    check(lseek(fd, 0, SEEK_CUR) == expected, "the position is %lld", (long long)lseek(fd, 0, SEEK_CUR));
    close(fd);
    close(file_fd);
}

/* ---- one thread ---- */

static void failed_exec_of_one_thread(void)
{
    check_begin("a failed exec leaves no call open");
    char *const arguments[] = {"none", NULL};
    weir_stream *s = NULL;
    check(weir_open(&s, "/dev/null", O_WRONLY, NULL) == 0 && weir_put_str(s, "x") == 1, "open");
    for (int i = 0; i < 3; i++)
        check(execv("/no/such/program", arguments) == -1 && errno == ENOENT, "execv");
    check(atomic_load(&weir__state(s)->in_call) == 0 && weir__state(s)->lock.owner == 0, "the call is still open");
    check(weir_close(s) == 0, "close");
}

int main(void)
{
    real = weir__kernel;
    atexit(resume_worker);
    failed_exec_of_one_thread(); /* first: no other thread has run */
    if (CHECK_SANITIZED) {
        check_begin("all other tests");
        check_skip("the sanitizer's own threads do not survive fork");
        return check_finish("ending_unshared");
    }
    for (int end = 0; end < ENDS; end++) {
        check_begin("%s while a worker writes", end_names[end]);
        check(count_lines(end_during_a_write, (enum end)end, false) >= 8, "lines are lost");
        check_begin("%s while a worker is stopped in weir_putc", end_names[end]);
        check(count_lines(end_in_putc, (enum end)end, true) >= 5, "lines are lost");
        check_begin("%s while a worker puts bytes", end_names[end]);
        for (int i = 0; i < 20; i++)
            count_lines(end_at_any_time, (enum end)end, true);
        check_begin("%s while a worker waits, with pending bytes", end_names[end]);
        check(count_lines(end_while_it_waits, (enum end)end, false) == LINES, "lines are lost");
        bytes_of_a_blocked_reader((enum end)end);
        check_position((enum end)end, true);
        check_position((enum end)end, false);
        if (end == FLUSH_ALL)
            continue; /* returns -EAGAIN */
        check_begin("%s while a worker is blocked in a write without end", end_names[end]);
        double begun = seconds_now();
        check(count_lines(end_with_a_blocked_writer, (enum end)end, false) == 1, "not one line");
        check(seconds_now() - begun < 20, "it took %.0f s", seconds_now() - begun);
    }
    return check_finish("ending_unshared");
}
