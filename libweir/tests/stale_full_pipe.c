/* stale_full_pipe.c: the delay timer never waits for the reader of a pipe, socket or terminal, also if another writer fills
 * it between the timer's poll(2) and its write, or if a record is larger than the pipe. Meanwhile the other streams' bytes
 * arrive, and later all bytes of this one, once and in order. */
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "../src/private.h"
#include "support/check.h"

enum { DEADLINE_S = 20, LARGE = 300000 };
enum kind { PIPE, SOCKET, TERMINAL };

static struct weir__kernel real;
static _Atomic int fill_fd = -1; /* filled behind the next poll that finds it writable */
static _Atomic bool filled;
static bool old_kernel, refuses;

/* As for a terminal of another user. */
static int open_refused(const char *path, int flags, mode_t mode)
{
    if (refuses && strncmp(path, "/proc/self/fd/", 14) == 0) {
        errno = EACCES;
        return -1;
    }
    return real.open(path, flags, mode);
}

/* Fills the pipe, socket or terminal as another writer does. */
static void fill(int fd)
{
    static const char block[4096];
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int other = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    for (size_t bytes = sizeof block; bytes; bytes /= 2)
        while ((other >= 0 ? write(other, block, bytes) : send(fd, block, bytes, MSG_DONTWAIT)) > 0)
            ;
    if (other >= 0)
        close(other);
}

static int poll_before_another_writer(struct pollfd *fds, nfds_t count, int timeout_ms)
{
    int result = real.poll(fds, count, timeout_ms), fd = fds->fd;
    if (result == 1 && atomic_compare_exchange_strong(&fill_fd, &fd, -1)) {
        fill(fds->fd);
        filled = true;
    }
    return result;
}

static ssize_t pwritev2_before_6_4(int fd, const struct iovec *iov, int count, off_t offset, int flags)
{
    if (old_kernel && flags) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return real.pwritev2(fd, iov, count, offset, flags);
}

static bool arrives(int fd)
{
    struct pollfd in = {.fd = fd, .events = POLLIN};
    char byte;
    return poll(&in, 1, DEADLINE_S * 1000) == 1 && read(fd, &byte, 1) == 1;
}

/* Opens a terminal that changes no byte, and its other end. */
static int open_terminal(int ends[2])
{
    char name[64];
    struct termios settings;
    ends[0] = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (ends[0] < 0 || grantpt(ends[0]) != 0 || unlockpt(ends[0]) != 0 || ptsname_r(ends[0], name, sizeof name) != 0)
        return -1;
    ends[1] = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    tcgetattr(ends[1], &settings);
    cfmakeraw(&settings);
    return tcsetattr(ends[1], TCSANOW, &settings);
}

/* Returns a stream with a delay whose other end is ends[0]. */
static weir_stream *open_ends(int ends[2], enum kind kind, struct weir_options options)
{
    weir_stream *s = NULL;
    int made = kind == TERMINAL ? open_terminal(ends)
               : kind == SOCKET ? socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)
                                : pipe2(ends, O_CLOEXEC);
    check(made == 0 && weir_fdopen(&s, ends[1], &options) == 0, "fdopen");
    return s;
}

static void wait_for_flag(const _Atomic bool *flag)
{
    for (double end = seconds_now() + DEADLINE_S; !*flag && seconds_now() < end;)
        sleep_seconds(0.001);
    check(*flag, "the timer does not come to its write");
}

/* Reads the filler's NULs and then `expected`, and nothing else. */
static void expect(int fd, const char *expected, size_t bytes)
{
    static char got[1 << 20];
    size_t seen = 0;
    while (seen < bytes) {
        struct pollfd in = {.fd = fd, .events = POLLIN};
        if (!check(poll(&in, 1, DEADLINE_S * 1000) == 1, "%zu of %zu bytes arrive", seen, bytes))
            return;
        char *part = got + seen;
        ssize_t more = read(fd, part, sizeof got - seen);
        for (ssize_t i = 0; i < more; i++)
            if (seen || part[i])
                got[seen++] = part[i]; /* moves the bytes behind the NULs to the front */
    }
    check(seen == bytes && memcmp(got, expected, bytes) == 0, "other bytes arrive, %zu for %zu", seen, bytes);
}

static void other_stream_is_not_delayed(weir_stream *other, int fd)
{
    for (int i = 0; i < 3; i++) {
        weir_putc(other, 'x');
        check(arrives(fd), "a byte of another stream does not arrive while the timer writes to a full pipe");
    }
}

static void another_writer_fills(const char *name, enum kind kind, enum weir_mode mode, unsigned flags)
{
    check_begin("%s, %s", name, old_kernel ? "kernel before 6.4" : "this kernel");
    int ends[2], others[2];
    filled = false;
    weir_stream *other = open_ends(others, PIPE, (struct weir_options){.mode = WEIR_FULL, .stale_ms = 20});
    weir_stream *s = open_ends(ends, kind, (struct weir_options){.mode = mode, .stale_ms = 5, .flags = flags});
    fill_fd = ends[1];
    check(weir_put_str(s, "line\n") == 5, "put_str");
    wait_for_flag(&filled);
    other_stream_is_not_delayed(other, others[0]);
    expect(ends[0], "line\n", 5);
    check(weir_put_str(s, "next\n") == 5, "put_str");
    expect(ends[0], "next\n", 5);
    check(weir_close(other) == 0 && weir_close(s) == 0, "close");
    check(read(ends[0], others, 1) <= 0, "bytes after the end"); /* EIO of a terminal */
    close(ends[0]);
    close(others[0]);
}

/* A whole record goes out in one write, and this one does not fit into the pipe or terminal. */
static void large_record(const char *name, enum kind kind, int least)
{
    check_begin("a record larger than the %s, %s", name, old_kernel ? "kernel before 6.4" : "this kernel");
    static char record[LARGE];
    int ends[2], others[2], unread = 0;
    for (int i = 0; i < LARGE; i++)
        record[i] = (char)(i % 2039 % 26 + 'a');
    record[LARGE - 1] = '\n';
    struct weir_options options = {.mode = WEIR_RECORD, .stale_ms = 5, .buffer_bytes = 2 * LARGE, .separator = '\n'};
    weir_stream *other = open_ends(others, PIPE, (struct weir_options){.mode = WEIR_FULL, .stale_ms = 20});
    weir_stream *s = open_ends(ends, kind, options);
    check(weir_putrec(s, record, LARGE - 1) >= 0, "putrec");
    for (double end = seconds_now() + DEADLINE_S; unread < least && seconds_now() < end; sleep_seconds(0.001))
        weir__kernel.ioctl(ends[0], 0x541b /* FIONREAD */, &unread);
    check(unread >= least, "%d bytes are in the %s", unread, name);
    other_stream_is_not_delayed(other, others[0]);
    expect(ends[0], record, LARGE);
    check(weir_close(other) == 0 && weir_close(s) == 0, "close");
    close(ends[0]);
    close(others[0]);
}

/* A daemon replaces its standard output by a log file. */
static void replaced_by_a_file(void)
{
    check_begin("a pipe that the program replaces by a file, %s", old_kernel ? "kernel before 6.4" : "this kernel");
    int ends[2], file = nameless_file();
    weir_stream *s = open_ends(ends, PIPE, (struct weir_options){.mode = WEIR_FULL, .stale_ms = 5});
    check(write(file, "first ", 6) == 6 && dup2(file, ends[1]) == ends[1], "dup2");
    check(weir_put_str(s, "second") == 6, "put_str");
    for (double end = seconds_now() + DEADLINE_S; size_of(file) != 12 && seconds_now() < end;)
        sleep_seconds(0.001);
    char got[20] = "";
    check(pread(file, got, sizeof got - 1, 0) == 12 && strcmp(got, "first second") == 0, "the file has \"%s\"", got);
    check(weir_close(s) == 0, "close");
    close(ends[0]);
    close(file);
}

int main(void)
{
    alarm(300); /* ends the test if a call hangs */
    real = weir__kernel;
    weir__kernel.poll = poll_before_another_writer;
    weir__kernel.pwritev2 = pwritev2_before_6_4;
    weir__kernel.open = open_refused;
    for (int old = 0; old < 2; old++) {
        old_kernel = old;
        another_writer_fills("a pipe that another writer fills", PIPE, WEIR_FULL, 0);
        another_writer_fills("the same with records", PIPE, WEIR_RECORD, WEIR_THREADS);
        another_writer_fills("the same with io_uring", PIPE, WEIR_FULL, WEIR_URING);
        another_writer_fills("a socket that another writer fills", SOCKET, WEIR_FULL, 0);
        another_writer_fills("a terminal that another writer fills", TERMINAL, WEIR_FULL, 0);
        another_writer_fills("the same, shared by threads", TERMINAL, WEIR_FULL, WEIR_THREADS);
        large_record("pipe", PIPE, 65536);
        large_record("terminal", TERMINAL, 2048);
        replaced_by_a_file();
    }
    refuses = true;
    large_record("terminal that cannot be opened again", TERMINAL, 2048);
    return check_finish("stale_full_pipe");
}
