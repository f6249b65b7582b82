/* signal_in_write.c: exec, a failing exec and fork in a signal handler that interrupts the write of the same thread: no byte
 * is written twice, and after the last two none is lost. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir.h>

#include "support/check.h"

enum action { EXEC, EXEC_FAILS, FORK, ACTIONS };
enum { BYTES = 60000, PIPE_BYTES = 4096 };

static const char *const names[ACTIONS] = {"exec", "an exec that fails", "fork"};
static volatile enum action action;

static void handle(int number)
{
    char *arguments[] = {"true", NULL};
    (void)number;
    if (action != FORK)
        execve(action == EXEC ? "/bin/true" : "/no/such/file", arguments, arguments + 1);
    else if (fork() == 0)
        _exit(0);
}

static void run_writer(int fd, unsigned flags)
{
    weir_stream *s;
    struct weir_options options = {.flags = flags, .buffer_bytes = BYTES, .on_fork = WEIR_FORK_FLUSH};
    struct sigaction handler = {.sa_handler = handle, .sa_flags = SA_RESTART};
    sigaction(SIGUSR1, &handler, NULL);
    if (weir_fdopen(&s, fd, &options) != 0)
        _exit(1);
    for (int i = 0; i < BYTES; i++)
        weir_putc(s, '0' + i % 10);
    int result = weir_flush(s);
    weir_put_str(s, "end");
    _exit(weir_close(s) != 0 || result != 0);
}

/* Waits until the pipe is full; the writer then blocks, or is about to. */
static bool wait_until_full(int fd)
{
    int bytes = 0;
    for (int i = 0; i < 5000 && bytes < PIPE_BYTES; i++) {
        ioctl(fd, FIONREAD, &bytes);
        usleep(1000);
    }
    usleep(20000);
    return bytes == PIPE_BYTES;
}

static void in_handler(enum action does, unsigned flags)
{
    check_begin("%s in a signal handler during a write, flags %#x", names[does], flags);
    static char got[2 * BYTES];
    int ends[2], status = -1;
    ssize_t bytes = 0, count, same = 0;
    action = does;
    check(pipe2(ends, O_CLOEXEC) == 0 && fcntl(ends[1], F_SETPIPE_SZ, PIPE_BYTES) == PIPE_BYTES, "a pipe");
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        fcntl(ends[1], F_SETFD, 0);
        run_writer(ends[1], flags);
    }
    close(ends[1]);
    check(wait_until_full(ends[0]) && (bytes = read(ends[0], got, PIPE_BYTES)) == PIPE_BYTES, "the first bytes");
    check(wait_until_full(ends[0]) && kill(child, SIGUSR1) == 0, "a signal during the write");
    while ((count = read(ends[0], got + bytes, sizeof got - (size_t)bytes)) > 0)
        bytes += count;
    close(ends[0]);
    waitpid(child, &status, 0);
    check(status == 0, "the child ended with %#x", (unsigned)status);
    while (same < bytes && same < BYTES && got[same] == '0' + same % 10)
        same++;
    if (does == EXEC)
        check(same == bytes && bytes >= 2 * PIPE_BYTES, "%zd bytes, of which the first %zd are in order", bytes, same);
    else
        check(same == BYTES && bytes == BYTES + 3 && memcmp(got + BYTES, "end", 3) == 0, "%zd bytes, %zd in order", bytes, same);
}

int main(void)
{
    for (int does = 0; does < ACTIONS; does++) {
        in_handler((enum action)does, 0);
        in_handler((enum action)does, WEIR_THREADS);
    }
    return check_finish("signal_in_write");
}
