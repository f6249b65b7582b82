/* modes.c: the write(2) calls of each mode; the sizes and the memory that a buffer may have. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../src/private.h"
#include "support/check.h"
#include "support/fake_kernel.h"

static struct fake_file file;

static weir_stream *begin(enum fake_kind kind, int oflags, struct weir_options options)
{
    weir_stream *s;
    fake_file_free(&file);
    fake_file_make(&file, kind);
    check(weir_fdopen(&s, fake_open(&file, oflags), &options) == 0, "fdopen");
    fake_forget();
    return s;
}

/* Checks the writes since the last check: the bytes of each, joined by '|'. */
static void check_writes(const char *expected, int line)
{
    size_t from;
    char is[4000] = "";
    size_t used = 0, at = file.size;
    for (uint64_t i = fake_count(); i > 0; i--)
        if (fake_note_at(i)->call == FAKE_WRITE)
            at -= (size_t)fake_note_at(i)->result;
    from = at;
    for (uint64_t i = 1; i <= fake_count(); i++) {
        const struct fake_note *note = fake_note_at(i);
        if (note->call != FAKE_WRITE)
            continue;
        used += (size_t)sprintf(is + used, "%s%.*s", used ? "|" : "", (int)note->result, (char *)file.bytes + from);
        from += (size_t)note->result;
    }
    check(strcmp(is, expected) == 0, "line %d: %s, not %s", line, is, expected);
    fake_forget();
}
#define WROTE(expected) check_writes(expected, __LINE__)

/* ---- each mode ---- */

static void mode_none(size_t bytes)
{
    check_begin("none, %zu bytes", bytes);
    weir_stream *s = begin(FAKE_FILE, O_WRONLY, (struct weir_options){.mode = WEIR_NONE, .buffer_bytes = bytes});
    struct iovec parts[3] = {{(char *)"x", 1}, {(char *)"", 0}, {(char *)"yz", 2}};
    weir_putc(s, 'a'), WROTE("a");
    weir_write(s, "bcd", 3), WROTE("bcd");
    weir_write(s, "", 0), WROTE("");
    weir_writev(s, parts, 3), WROTE("xyz");
    weir_printf(s, "%d-%s", 12345, "six"), WROTE("12345-six");
    weir_put_str(s, "string"), WROTE("string");
    weir_put_u64(s, 987), WROTE("987");
    weir_putrec(s, "record", 6), WROTE("record\n");
    weir_endrec(s), WROTE("\n");
    char *to;
    weir_reserve(s, &to, 3), memcpy(to, "res", 3), WROTE("");
    weir_commit(s, 3), WROTE("res");
    check(weir_close(s) == 0, "close");
    WROTE("");
}

static void mode_line(size_t bytes)
{
    check_begin("line, %zu bytes", bytes);
    weir_stream *s = begin(FAKE_FILE, O_WRONLY, (struct weir_options){.mode = WEIR_LINE, .buffer_bytes = bytes});
    weir_put_str(s, "one"), WROTE("");
    weir_putc(s, '\n'), WROTE("one\n");
    weir_write(s, "a\nb\nc", 5), WROTE("a\nb\n");
    weir_write(s, "d\ne", 3), WROTE("cd\n");
    weir_printf(s, "f\n%d", 7), WROTE("ef\n");
    weir_putrec(s, "record", 6), WROTE("7record\n");
    weir_put_str(s, "tail");
    char *to;
    weir_reserve(s, &to, 4), memcpy(to, "x\nyz", 4);
    weir_commit(s, 4), WROTE("tailx\n");
    weir_endrec(s), WROTE("yz\n");
    weir_put_str(s, "end"), WROTE("");
    check(weir_close(s) == 0, "close");
    WROTE("end");
}

static void line_longer_than_the_buffer(void)
{
    check_begin("a line longer than the buffer");
    weir_stream *s = begin(FAKE_FILE, O_WRONLY, (struct weir_options){.mode = WEIR_LINE, .buffer_bytes = 4});
    for (const char *c = "abcdefghij\nkl"; *c; c++)
        weir_putc(s, *c);
    WROTE("abcd|efgh|ij\n");
    check(weir_close(s) == 0, "close");
    WROTE("kl");
}

static void mode_full(size_t bytes, size_t chunk)
{
    check_begin("full, %zu bytes, written by %zu", bytes, chunk);
    weir_stream *s = begin(FAKE_FILE, O_WRONLY, (struct weir_options){.mode = WEIR_FULL, .buffer_bytes = bytes});
    char text[5000];
    memset(text, 'x', sizeof text);
    size_t total = 0;
    for (int i = 0; i < 1000 && total < 20000; i++, total += chunk)
        if (chunk == 1)
            weir_putc(s, 'x');
        else
            weir_write(s, text, chunk);
    check(weir_close(s) == 0 && file.size == total, "%zu of %zu", file.size, total);
    uint64_t writes = 0;
    for (uint64_t i = 1; i <= fake_count(); i++) {
        const struct fake_note *note = fake_note_at(i);
        if (!note || note->call != FAKE_WRITE)
            continue;
        writes++;
        bool last = (uint64_t)total == 0 || writes == (total + bytes - 1) / bytes;
        if (chunk < bytes)
            check(last || (size_t)note->result == bytes, "a write of %lld bytes", (long long)note->result);
    }
    if (chunk < bytes)
        check(writes == (total + bytes - 1) / bytes, "%llu writes", (unsigned long long)writes);
    else
        check(writes <= (total + chunk - 1) / chunk, "%llu writes", (unsigned long long)writes);
}

static void mode_record(void)
{
    check_begin("record, 10 bytes");
    weir_stream *s = begin(FAKE_FILE, O_WRONLY, (struct weir_options){.mode = WEIR_RECORD, .buffer_bytes = 10});
    weir_putrec(s, "one", 3), weir_putrec(s, "two", 3), WROTE("");
    weir_put_str(s, "thr"), WROTE("one\ntwo\n");
    weir_put_str(s, "ee\nfour"), WROTE("");
    weir_endrec(s), WROTE("three\n");
    weir_putrec(s, "a record larger than the buffer", 31), WROTE("four\n");
    weir_putrec(s, "x", 1), weir_flush(s), WROTE("a record larger than the buffer\n|x\n");
    weir_put_str(s, "half"), weir_flush(s), WROTE("half");
    check(weir_close(s) == 0, "close");
    check_begin("records without a separator");
    struct weir_options options = {.mode = WEIR_RECORD, .separator = WEIR_SEPARATOR_NONE, .buffer_bytes = 6};
    s = begin(FAKE_FILE, O_WRONLY, options);
    weir_putrec(s, "abc", 3), weir_put_str(s, "d"), weir_endrec(s), weir_putrec(s, "efgh", 4), WROTE("abcd");
    weir_close(s);
    WROTE("efgh");
}

/* Every write consists of whole records, as many as PIPE_BUF allows. */
static void records_on_a_pipe(void)
{
    check_begin("records on a pipe");
    weir_stream *s = begin(FAKE_PIPE, O_WRONLY, (struct weir_options){.mode = WEIR_RECORD});
    struct random r = random_from(5);
    char record[9000];
    memset(record, 'r', sizeof record);
    for (int i = 0; i < 400; i++)
        check(weir_putrec(s, record, random_below(&r, i % 50 == 49 ? sizeof record : 300)) >= 0, "putrec failed");
    weir_close(s);
    size_t at = 0;
    for (uint64_t i = 1; i <= fake_count(); i++) {
        const struct fake_note *note = fake_note_at(i);
        if (note->call != FAKE_WRITE)
            continue;
        size_t bytes = (size_t)note->result;
        check(file.bytes[at + bytes - 1] == '\n', "a record is split");
        if (bytes > PIPE_BUF)
            check(memchr(file.bytes + at, '\n', bytes - 1) == NULL, "%zu bytes are more than one record", bytes);
        const unsigned char *next = memchr(file.bytes + at + bytes, '\n', file.size - at - bytes);
        if (next && i < fake_count() - 1 && bytes < PIPE_BUF / 2)
            check((size_t)(next + 1 - file.bytes) - at > PIPE_BUF, "a small write of %zu bytes", bytes);
        at += bytes;
    }
    check(at == file.size, "%zu bytes of %zu", at, file.size);
}

static void automatic_mode(void)
{
    check_begin("automatic mode");
    weir_stream *s = begin(FAKE_TERMINAL, O_WRONLY, (struct weir_options){0});
    check(weir_get_mode(s) == WEIR_LINE, "not line mode for a terminal");
    weir_close(s);
    for (enum fake_kind kind = FAKE_FILE; kind <= FAKE_PIPE; kind++) {
        s = begin(kind, O_WRONLY, (struct weir_options){0});
        check(weir_get_mode(s) == WEIR_FULL, "not full mode for a file or pipe");
        weir_close(s);
    }
    pid_t child = fork();
    if (child == 0) { /* any kind of file as descriptor 2 */
        close(2);
        open("/dev/null", O_WRONLY);
        _exit(weir_get_mode(weir_stderr()) != WEIR_NONE || weir_get_mode(weir_stdout()) == WEIR_NONE);
    }
    int status = -1;
    waitpid(child, &status, 0);
    check(status == 0, "not mode none for descriptor 2");
}

static void mode_changes(void)
{
    check_begin("changes of mode and size with pending bytes");
    weir_stream *s = begin(FAKE_FILE, O_WRONLY, (struct weir_options){.mode = WEIR_FULL, .buffer_bytes = 8});
    weir_put_str(s, "one\ntw"), WROTE("");
    check(weir_set_mode(s, WEIR_LINE, 0) == 0, "line"), WROTE("one\n");
    weir_put_str(s, "o\nthr"), WROTE("two\n");
    check(weir_set_mode(s, WEIR_NONE, 0) == 0, "none"), WROTE("thr");
    weir_putc(s, 'e'), WROTE("e");
    check(weir_set_mode(s, WEIR_RECORD, 100) == 0, "record"), WROTE("");
    weir_put_str(s, "e\nfour\nfi"), WROTE("");
    check(weir_set_mode(s, WEIR_FULL, 0) == 0, "full"), WROTE("");
    weir_putc(s, 'v'), weir_putc(s, 'e'), weir_flush(s), WROTE("e\nfour\nfive");
    check(weir_set_mode(s, WEIR_FULL, 2) == 0, "small");
    weir_putc(s, '1'), weir_putc(s, '2'), weir_putc(s, '3'), WROTE("12");
    check(weir_set_mode(s, (enum weir_mode)5, 0) == -EINVAL, "no such mode");
    check(weir_set_mode(s, WEIR_FULL, WEIR_BUFFER_MAX + 1) == -EINVAL, "no such size");
    check(weir_close(s) == 0, "close");
    WROTE("3");
}

static int writev_calls;
static ssize_t (*fake_writev)(int fd, const struct iovec *iov, int count);

static ssize_t count_writev(int fd, const struct iovec *iov, int count)
{
    writev_calls++;
    return fake_writev(fd, iov, count);
}

static void end_of_a_line(void)
{
    check_begin("the end of a line goes out with the pending bytes, in one write(2), or is not accepted");
    weir_stream *s = begin(FAKE_FILE, O_WRONLY, (struct weir_options){.mode = WEIR_LINE, .buffer_bytes = 8});
    fake_writev = weir__kernel.writev;
    weir__kernel.writev = count_writev;
    weir_put_str(s, "abc"), weir_putc(s, '\n'), WROTE("abc\n");
    weir_put_str(s, "de"), weir_write(s, "f\ng", 3), WROTE("def\n");
    check(writev_calls == 0, "%d calls of writev", writev_calls);
    weir_put_str(s, "1234567"), weir_write(s, "8\n", 2), WROTE("g12345678\n");
    check(writev_calls == 1, "%d calls of writev without room", writev_calls);
    weir_put_str(s, "xyz");
    file.space = file.size + 3;
    check(weir_putc(s, '\n') == -ENOSPC, "putc on a full disk");
    check(memcmp(file.bytes + file.size - 3, "xyz", 3) == 0, "the pending bytes are not written");
    file.space = 0;
    weir_clear(s);
    fake_forget();
    check(weir_flush(s) == 0, "flush"), WROTE("");
    weir_putc(s, '\n'), WROTE("\n");
    weir__kernel.writev = fake_writev;
    check(weir_close(s) == 0, "close");
}

/* ---- sizes and memory ---- */

static void sizes(void)
{
    check_begin("sizes from 1 byte to 1 GiB");
    weir_stream *s;
    struct weir_options options = {.buffer_bytes = WEIR_BUFFER_MAX + 1};
    check(weir_open_collector(&s, &options) == -EINVAL, "WEIR_BUFFER_MAX + 1 is refused");
    for (size_t bytes = 1; bytes <= WEIR_BUFFER_MAX; bytes *= 8) {
        s = begin(FAKE_FILE, O_RDWR, (struct weir_options){.buffer_bytes = bytes});
        struct weir_stats stats;
        weir_get_stats(s, &stats);
        check(stats.buffer_bytes == bytes && stats.read_buffer_bytes == bytes, "%zu", bytes);
        check(weir_put_str(s, "some text") == 9 && weir_seek(s, 5, SEEK_SET) == 5 && weir_getc(s) == 't',
              "write, seek, read");
        check(weir_close(s) == 0, "close");
    }
}

static void default_sizes(void)
{
    check_begin("sizes by the kind of file");
    static const struct {
        enum fake_kind kind;
        size_t least, most;
    } kinds[] = {{FAKE_FILE, 65536, 1 << 20},
                 {FAKE_PIPE, 4096, 65536},
                 {FAKE_TERMINAL, 1024, 65536},
                 {FAKE_SOCKET, 4096, 1 << 20}};
    for (int i = 0; i < 4; i++) {
        weir_stream *s = begin(kinds[i].kind, O_WRONLY, (struct weir_options){0});
        struct weir_stats stats;
        weir_get_stats(s, &stats);
        check(stats.buffer_bytes >= kinds[i].least && stats.buffer_bytes <= kinds[i].most, "%d: %llu", i,
              (unsigned long long)stats.buffer_bytes);
        weir_close(s);
    }
}

static void callers_memory(void)
{
    check_begin("the caller's memory");
    char memory[12] = "############";
    struct weir_options options = {.mode = WEIR_FULL, .buffer = memory + 1, .buffer_bytes = 10};
    weir_stream *s = begin(FAKE_FILE, O_WRONLY, options);
    weir_put_str(s, "12345");
    check(memcmp(memory, "#12345", 6) == 0, "the pending bytes are in the caller's memory");
    weir_put_str(s, "67890abc");
    check(memory[0] == '#' && memory[11] == '#', "bytes outside the caller's memory have changed");
    WROTE("1234567890");
    weir_close(s);
    memset(memory, '#', 12);
    s = begin(FAKE_FILE, O_RDWR, options);
    check(weir_put_str(s, "12345678") == 8 && weir_seek(s, 0, SEEK_SET) == 0 && weir_getc(s) == '1',
          "write, seek, read");
    check(weir_ungetc(s, 'x') == 'x' && weir_getc(s) == 'x', "ungetc");
    check(memory[0] == '#' && memory[11] == '#', "bytes outside the caller's memory have changed");
    check(weir_set_buffer(s, WEIR_FULL, memory, 10) == -EBUSY, "weir_set_buffer after reading");
    weir_close(s);
    s = begin(FAKE_FILE, O_WRONLY, (struct weir_options){0});
    check(weir_set_buffer(s, WEIR_LINE, memory, 3) == 0 && weir_get_mode(s) == WEIR_LINE, "weir_set_buffer");
    weir_put_str(s, "abcd"), WROTE("abcd");
    weir_close(s);
}

int main(void)
{
    static const size_t some[] = {1, 2, 7, 64, 4096};
    fake_install();
    for (int i = 0; i < 5; i++) {
        mode_none(some[i]);
        if (some[i] >= 64)
            mode_line(some[i]);
        for (int j = 0; j < 5; j++)
            mode_full(some[i], some[j]);
    }
    line_longer_than_the_buffer();
    mode_record();
    records_on_a_pipe();
    automatic_mode();
    mode_changes();
    end_of_a_line();
    sizes();
    default_sizes();
    callers_memory();
    return check_finish("modes");
}
