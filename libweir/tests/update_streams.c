/* update_streams.c: streams for both directions over a socket, a terminal and callbacks without a position. A program that
 * asks and then reads the answer needs no flush: pending bytes are written before a read from the descriptor. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#define WEIR_STDIO_NO_NAMES
#include <weir/stdio.h>

#include "../src/private.h"
#include "support/check.h"

/* Answers each line with "+" and the line, until the other end is closed. */
static void answer_lines(int fd)
{
    char byte;
    bool begins = true;
    while (read(fd, &byte, 1) == 1) {
        if ((begins && write(fd, "+", 1) != 1) || write(fd, &byte, 1) != 1)
            _exit(1);
        begins = byte == '\n';
    }
    _exit(0);
}

/* Returns a descriptor whose other end is read by a child that answers. A call that waits without end is ended by SIGALRM. */
static int connect_peer(bool terminal, pid_t *peer)
{
    int ends[2] = {-1, -1};
    if (terminal) {
        struct termios raw;
        ends[1] = posix_openpt(O_RDWR | O_NOCTTY);
        grantpt(ends[1]);
        unlockpt(ends[1]);
        ends[0] = open(ptsname(ends[1]), O_RDWR | O_NOCTTY);
        tcgetattr(ends[0], &raw);
        cfmakeraw(&raw);
        tcsetattr(ends[0], TCSANOW, &raw);
    } else if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) {
        abort();
    }
    *peer = fork();
    if (*peer == 0) {
        close(ends[0]);
        answer_lines(ends[1]);
    }
    close(ends[1]);
    return ends[0];
}

static void end_peer(pid_t peer)
{
    kill(peer, SIGKILL);
    waitpid(peer, NULL, 0);
}

static void ask_by_stdio(bool terminal, const char *mode)
{
    check_begin("fdopen %s of a %s", mode, terminal ? "terminal" : "socket");
    pid_t peer;
    char text[20] = "";
    weir_stream *s = weir_stdio_fdopen(connect_peer(terminal, &peer), mode);
    weir_stdio_fputs("one\n", s);
    check(weir_stdio_fgets(text, sizeof text, s) && strcmp(text, "+one\n") == 0, "fgets: %s", text);
    weir_stdio_fprintf(s, "two\n");
    check(weir_stdio_fscanf(s, "%19s", text) == 1 && strcmp(text, "+two") == 0, "fscanf: %s", text);
    weir_stdio_fputs("three\n", s);
    check(weir_stdio_getc(s) == '\n' && weir_stdio_getc(s) == '+', "getc");
    check(weir_stdio_fread(text, 1, 6, s) == 6 && memcmp(text, "three\n", 6) == 0, "fread");
    check(weir_stdio_fclose(s) == 0, "fclose");
    end_peer(peer);
}

static void ask(bool terminal, unsigned flags, enum weir_mode mode)
{
    check_begin("a %s, flags %#x, mode %d", terminal ? "terminal" : "socket", flags, (int)mode);
    pid_t peer;
    char *record, text[300], long_line[300];
    struct weir_options options = {.flags = flags, .mode = mode};
    weir_stream *s = NULL;
    int result = weir_fdopen(&s, connect_peer(terminal, &peer), &options);
    if (result == -ENOSYS || result == -EPERM) {
        check_skip("no io_uring");
        end_peer(peer);
        return;
    }
    check(result == 0, "fdopen returned %d", result);
    weir_put_str(s, "one\n");
    check(weir_getrec(s, &record) == 5 && memcmp(record, "+one\n", 5) == 0, "getrec");
    weir_put_str(s, "two\n");
    check(weir_getc(s) == '+' && weir_read(s, text, 4) == 4 && memcmp(text, "two\n", 4) == 0, "getc and read");
    memset(long_line, 'x', 299);
    long_line[299] = '\n';
    weir_write(s, long_line, 300);
    check(weir_peek(s, &record, 1) >= 1 && weir_skip(s, 301) == 301, "peek and skip");
    check(weir_close(s) == 0, "close");
    end_peer(peer);
}

/* ---- callbacks ---- */

static size_t written, written_at_read;

static ssize_t count_write(void *context, const void *from, size_t bytes)
{
    (void)context;
    (void)from;
    written += bytes;
    return (ssize_t)bytes;
}

static ssize_t give_line(void *context, void *to, size_t bytes)
{
    (void)context;
    (void)bytes;
    written_at_read = written;
    memcpy(to, "answer\n", 7);
    return 7;
}

static ssize_t cookie_write(void *cookie, const char *from, size_t bytes) { return count_write(cookie, from, bytes); }
static ssize_t cookie_read(void *cookie, char *to, size_t bytes) { return give_line(cookie, to, bytes); }

static void callbacks(void)
{
    check_begin("callbacks");
    struct weir_callbacks both = {.read = give_line, .write = count_write};
    char *record, text[20];
    weir_stream *s;
    written = 0;
    check(weir_open_callbacks(&s, &both, NULL, NULL) == 0, "open");
    weir_put_str(s, "query\n");
    check(weir_getrec(s, &record) == 7 && written_at_read == 6, "%zu bytes were written before the read", written_at_read);
    check(weir_close(s) == 0, "close");
    written = 0;
    s = weir_stdio_fopencookie(NULL, "r+", (cookie_io_functions_t){.read = cookie_read, .write = cookie_write});
    weir_stdio_fputs("query\n", s);
    check(weir_stdio_fgets(text, sizeof text, s) && written_at_read == 6, "fopencookie: %zu bytes", written_at_read);
    check(weir_stdio_fclose(s) == 0, "fclose");
}

/* ---- writes that fail ---- */

/* The bytes that the peer has sent before it closed are still read; the error is the one of the write. */
static void the_peer_has_closed(void)
{
    check_begin("the peer has closed");
    int ends[2];
    char *record;
    weir_stream *s;
    check(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0 && write(ends[1], "bye\n", 4) == 4, "socketpair");
    close(ends[1]);
    check(weir_fdopen(&s, ends[0], NULL) == 0 && weir_put_str(s, "x\n") == 2, "fdopen");
    check(weir_getrec(s, &record) == 4 && memcmp(record, "bye\n", 4) == 0, "the answer");
    check(weir_flush(s) == -EPIPE && weir_close(s) == -EPIPE, "the error sticks");
}

/* A full non-blocking socket does not keep the program from reading: the peer may wait for that. */
static void the_socket_is_full(void)
{
    check_begin("the socket is full");
    int ends[2];
    char *record, block[4096] = "";
    weir_stream *s;
    check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0 && write(ends[1], "go on\n", 6) == 6, "socketpair");
    while (write(ends[0], block, sizeof block) > 0)
        continue;
    while (write(ends[0], block, 1) > 0)
        continue;
    check(weir_fdopen(&s, ends[0], NULL) == 0 && weir_put_str(s, "later\n") == 6, "fdopen");
    check(weir_getrec(s, &record) == 6, "the read");
    check(weir_error(s) == 0 && weir_flush(s) == -EAGAIN, "the bytes are still pending");
    while (read(ends[1], block, sizeof block) > 0)
        continue;
    check(weir_close(s) == 0 && read(ends[1], block, sizeof block) == 6 && memcmp(block, "later\n", 6) == 0, "they are written");
    close(ends[1]);
}

/* A read with nothing pending makes no other call. */
static void writes_before_reads(void)
{
    check_begin("a stream that only reads");
    pid_t peer;
    struct weir_stats stats;
    char *record;
    weir_stream *s;
    check(weir_fdopen(&s, connect_peer(false, &peer), NULL) == 0, "fdopen");
    weir_put_str(s, "1\n2\n3\n");
    for (int i = 0; i < 3; i++)
        check(weir_getrec(s, &record) == 3, "getrec");
    weir_get_stats(s, &stats);
    check(stats.writes == 1, "%d writes", (int)stats.writes);
    weir_close(s);
    end_peer(peer);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    alarm(30);
    for (int terminal = 0; terminal < 2; terminal++) {
        ask_by_stdio(terminal, "r+");
        ask_by_stdio(terminal, "w+");
        for (int mode = WEIR_AUTO; mode <= WEIR_RECORD; mode++) {
            ask(terminal, 0, (enum weir_mode)mode);
            ask(terminal, WEIR_SHARE, (enum weir_mode)mode);
        }
        ask(terminal, WEIR_THREADS, WEIR_FULL);
    }
    ask(false, WEIR_URING, WEIR_FULL);
    callbacks();
    the_peer_has_closed();
    the_socket_is_full();
    writes_before_reads();
    return check_finish("update_streams");
}
