/* sharing.c: descriptors that several programs use in turn: one of them reads each line exactly once, and written
 * bytes are in the order of the writes. Tied streams: a prompt is visible before the program waits for the answer. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "../src/private.h"
#include "support/check.h"
#include "support/fake_kernel.h"

enum { LINES = 60, MAX_CALLS_PER_LINE = 5 }; /* a peek, a read, and what a lock of the shared position takes */
enum source { TARGET_MEMORY_FILE, TARGET_PIPE, TARGET_SOCKET, TARGET_TERMINAL, SOURCES };
static const char *const source_names[] = {"file", "pipe", "socket", "terminal"};

/* Writes line `number` to `to` and returns its length. For sources other than terminals, some lines are longer than what
 * peek_source.c copies at once. */
static int line_of(char *to, int number, enum source source)
{
    int filler = number % 13 == 12 && source != TARGET_TERMINAL ? 5000 : number * 37 % 120;
    int length = sprintf(to, "%d ", number);
    memset(to + length, 'a' + number % 26, (size_t)filler);
    to[length + filler] = '\n';
    return length + filler + 1;
}

/* Returns a descriptor that delivers the lines and then end of file. For all but a file, a child writes
 * them; *writer is its PID, or -1. */
static int give_lines(enum source source, pid_t *writer)
{
    char name[] = "/tmp/weir-sharing-XXXXXX", line[6000];
    int ends[2], fd;
    *writer = -1;
    if (source == TARGET_MEMORY_FILE) {
        fd = mkstemp(name);
        unlink(name);
        for (int i = 0; i < LINES; i++)
            if (write(fd, line, (size_t)line_of(line, i, source)) < 0)
                abort();
        lseek(fd, 0, SEEK_SET);
        return fd;
    }
    if (source == TARGET_TERMINAL) {
        ends[1] = posix_openpt(O_RDWR | O_NOCTTY);
        grantpt(ends[1]);
        unlockpt(ends[1]);
        ends[0] = open(ptsname(ends[1]), O_RDWR | O_NOCTTY);
        struct termios attributes;
        tcgetattr(ends[0], &attributes);
        attributes.c_lflag &= ~(tcflag_t)ECHO;
        tcsetattr(ends[0], TCSANOW, &attributes);
    } else if ((source == TARGET_PIPE ? pipe(ends) : socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) != 0) {
        abort();
    }
    *writer = fork();
    if (*writer == 0) {
        close(ends[0]);
        for (int i = 0; i < LINES; i++)
            if (write(ends[1], line, (size_t)line_of(line, i, source)) < 0)
                _exit(1);
        if (source == TARGET_TERMINAL) {
            _exit(write(ends[1], "\004", 1) != 1 || sleep(20)); /* EOF (^D); keeps the terminal open until it is killed */
        }
        _exit(0);
    }
    close(ends[1]);
    return ends[0];
}

static bool is_line(const char *text, size_t bytes, int number, enum source source)
{
    char expected[6000];
    return bytes == (size_t)line_of(expected, number, source) && memcmp(text, expected, bytes) == 0;
}

/* Returns whether `sh` reads line `number`. Its `read` leaves the bytes after the line to others. */
static bool read_by_shell(int fd, int number, enum source source)
{
    char is[6000] = "";
    int out[2];
    if (pipe2(out, O_CLOEXEC) != 0)
        return false;
    pid_t child = fork();
    if (child == 0) {
        dup2(fd, STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        execlp("sh", "sh", "-c", "IFS= read -r line; printf '%s\\n' \"$line\"", (char *)NULL);
        _exit(1);
    }
    close(out[1]);
    size_t all = 0;
    for (ssize_t got; (got = read(out[0], is + all, sizeof is - all)) > 0;)
        all += (size_t)got;
    close(out[0]);
    waitpid(child, NULL, 0);
    return is_line(is, all, number, source);
}

static void lines_in_turn(enum source source, size_t buffer_bytes)
{
    check_begin("lines of a %s in turn, %zu bytes", source_names[source], buffer_bytes);
    pid_t writer;
    int fd = give_lines(source, &writer);
    weir_stream *s;
    struct weir_options options = {.flags = WEIR_SHARE, .buffer_bytes = buffer_bytes};
    check(weir_fdopen(&s, fd, &options) == 0, "fdopen");
    struct random r = random_from(buffer_bytes + source);
    for (int i = 0; i < LINES; i++) {
        char *record;
        ssize_t got;
        if (random_below(&r, 3) == 0) {
            weir_flush(s); /* optional: the handler of fork flushes, too */
            if (!check(read_by_shell(fd, i, source), "the shell did not read line %d", i))
                break;
            continue;
        }
        if (random_below(&r, 4) == 0)
            weir_peek(s, &record, 1);
        got = weir_getrec(s, &record);
        if (!check(got > 0 && is_line(record, (size_t)got, i, source), "line %d: %zd", i, got))
            break;
    }
    check(weir_getc(s) == WEIR_EOF, "no end of file");
    check(weir_close(s) == 0, "close");
    if (writer > 0) {
        kill(writer, SIGKILL);
        waitpid(writer, NULL, 0);
    }
}

static void calls_per_line(enum source source)
{
    check_begin("system calls per line of a shared %s", source_names[source]);
    pid_t writer;
    int fd = give_lines(source, &writer), count = 0;
    weir_stream *s;
    char *record;
    struct weir_options options = {.flags = WEIR_SHARE};
    weir_fdopen(&s, fd, &options);
    sleep_seconds(0.2); /* until the source is full, or the child has written everything */
    fake_install();
    fake_forget();
    while (weir_getrec(s, &record) > 0)
        count++;
    uint64_t calls = fake_count();
    fake_remove();
    printf("  %.1f calls per line\n", (double)calls / count);
    check(count == LINES && calls <= (uint64_t)LINES * MAX_CALLS_PER_LINE, "%d lines, %llu calls", count, (unsigned long long)calls);
    weir_close(s);
    waitpid(writer, NULL, 0);
}

static void written_in_turn(void)
{
    check_begin("bytes written in turn");
    char name[] = "/tmp/weir-sharing-XXXXXX", is[200] = "";
    int fd = mkstemp(name);
    unlink(name);
    weir_stream *s;
    struct weir_options options = {.flags = WEIR_SHARE};
    weir_fdopen(&s, fd, &options);
    weir_put_str(s, "one ");
    pid_t child = fork();
    if (child == 0) {
        dup2(fd, STDOUT_FILENO);
        execlp("echo", "echo", "-n", "two ", (char *)NULL);
        _exit(1);
    }
    waitpid(child, NULL, 0);
    weir_put_str(s, "three ");
    check(weir_fileno(s) == fd && dprintf(fd, "four ") == 5, "write to the descriptor");
    weir_put_str(s, "five");
    check(weir_tell(s) == 23, "tell returned %d", (int)weir_tell(s));
    check(weir_seek(s, 4, SEEK_SET) == 4 && weir_put_str(s, "TWO") == 3, "seek back and write");
    check(weir_flush(s) == 0 && pread(fd, is, sizeof is, 0) == 23 && strcmp(is, "one TWO three four five") == 0, "%s", is);
    check(weir_close(s) == 0, "close");
}

/* ---- tied streams ---- */

/* Returns whether fd delivers the text within 5 s. */
static bool delivers(int fd, const char *text)
{
    char is[200];
    size_t all = 0;
    struct pollfd in = {.fd = fd, .events = POLLIN};
    while (all < strlen(text) && poll(&in, 1, 5000) == 1) {
        ssize_t got = read(fd, is + all, sizeof is - all);
        if (got <= 0)
            break;
        all += (size_t)got;
    }
    return all >= strlen(text) && memcmp(is, text, strlen(text)) == 0;
}

static void prompt_on_a_terminal(void)
{
    check_begin("a prompt on a terminal is written before the answer is read");
    int master = posix_openpt(O_RDWR | O_NOCTTY), status;
    grantpt(master);
    unlockpt(master);
    pid_t child = fork();
    if (child == 0) {
        int slave = open(ptsname(master), O_RDWR);
        for (int fd = 0; fd < 2; fd++)
            dup2(slave, fd);
        char *record;
        weir_printf(weir_stdout(), "name? "); /* not a whole line: pending */
        ssize_t got = weir_getrec(weir_stdin(), &record);
        weir_printf(weir_stdout(), "hello, %.*s", (int)got, record);
        exit(0);
    }
    check(delivers(master, "name? "), "no prompt");
    check(write(master, "you\n", 4) == 4 && delivers(master, "you\r\nhello, you\r\n"), "no answer");
    waitpid(child, &status, 0);
    check(status == 0, "the child ended with %x", (unsigned)status);
    close(master);
}

static void explicit_tie(void)
{
    check_begin("reading a stream flushes the tied one");
    int in[2], out[2];
    weir_stream *from, *to;
    char byte;
    check(pipe(in) == 0 && pipe2(out, O_NONBLOCK) == 0, "pipes");
    weir_fdopen(&from, in[0], NULL);
    weir_fdopen(&to, out[1], NULL);
    check(weir_tie(from, to) == 0 && weir_tie(from, from) == -EINVAL, "tied");
    check(write(in[1], "ab", 2) == 2 && weir_putc(to, '1') == '1', "set up");
    check(weir_getc(from) == 'a' && read(out[0], &byte, 1) == 1 && byte == '1', "a read flushes");
    weir_putc(to, '2');
    check(weir_getc(from) == 'b' && read(out[0], &byte, 1) < 0, "a read from the buffer does not flush");
    check(weir_tie(from, NULL) == 0 && write(in[1], "c", 1) == 1, "untie");
    check(weir_getc(from) == 'c' && read(out[0], &byte, 1) < 0, "a read after untying does not flush");
    weir_tie(from, to);
    check(weir_close(to) == 0 && write(in[1], "d", 1) == 1 && weir_getc(from) == 'd', "closing a stream unties it");
    weir_close(from);
    close(in[1]);
    close(out[0]);
}

int main(void)
{
    static const size_t sizes[] = {0, 1, 100};
    for (int source = 0; source < SOURCES; source++)
        for (int i = 0; i < 3; i++)
            lines_in_turn((enum source)source, sizes[i]);
    calls_per_line(TARGET_PIPE);
    calls_per_line(TARGET_SOCKET);
    written_in_turn();
    prompt_on_a_terminal();
    explicit_tie();
    return check_finish("sharing");
}
