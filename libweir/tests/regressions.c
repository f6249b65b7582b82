/* regressions.c: one test for each fixed bug. Bugs of the bounded delay and of child processes are in
 * regressions_processes.c. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../src/private.h"
#include "support/check.h"
#include "support/fake_kernel.h"

static weir_stream *open_fake(struct fake_file *f, enum fake_kind kind, int oflags, struct weir_options options)
{
    weir_stream *s = NULL;
    fake_file_make(f, kind);
    check(weir_fdopen(&s, fake_open(f, oflags), &options) == 0, "fdopen");
    return s;
}

static bool file_is(const struct fake_file *f, const char *text)
{
    return f->size == strlen(text) && memcmp(f->bytes, text, f->size) == 0;
}

static void set_fault(enum fake_call call, int error, uint64_t times)
{
    struct fake_fault fault = {1, times, error, false, 1u << call};
    fake_plan(&fault);
}

static void clear_fault(void) { fake_plan(NULL); }

/* ---- writing ---- */

static void text_after_a_begun_record(void)
{
    struct fake_file f;
    weir_stream *s = open_fake(&f, FAKE_FILE, O_WRONLY, (struct weir_options){.mode = WEIR_RECORD});
    weir_putc(s, 'a');
    weir_put_str(s, "bc");
    weir_put_u64(s, 4);
    weir_endrec(s);
    check(weir_close(s) == 0 && file_is(&f, "abc4\n"), "the file has %.*s", (int)f.size, (char *)f.bytes);
    fake_file_free(&f);
}

static void a_write_to_a_reading_stream_sticks(void)
{
    struct fake_file f;
    weir_stream *s = open_fake(&f, FAKE_FILE, O_RDONLY, (struct weir_options){0});
    check(weir_flush(s) == 0 && weir_error(s) == 0, "nothing was written");
    check(weir_putc(s, 'a') == -EBADF && weir_error(s) == -EBADF, "the write");
    check(weir_flush(s) == -EBADF && weir_put_u64(s, 1) == -EBADF, "it sticks");
    weir_clear(s);
    check(weir_flush(s) == 0 && weir_error(s) == 0, "until weir_clear");
    check(weir_write(s, "ab", 2) == -EBADF && weir_close(s) == -EBADF, "the last call is enough");
    fake_file_free(&f);
}

static void commit_while_the_sink_blocks(void)
{
    struct fake_file f;
    weir_stream *s = open_fake(&f, FAKE_PIPE, O_WRONLY, (struct weir_options){.mode = WEIR_NONE});
    char *to;
    check(weir_reserve(s, &to, 3) >= 3, "reserve");
    memcpy(to, "abc", 3);
    set_fault(FAKE_WRITE, EAGAIN, 1);
    check(weir_commit(s, 3) == 0, "commit accepts the bytes");
    clear_fault();
    check(weir_close(s) == 0 && file_is(&f, "abc"), "the bytes are written once");
    fake_file_free(&f);
}

static void many_parts_are_one_write(void)
{
    struct fake_file f;
    weir_stream *s = open_fake(&f, FAKE_FILE, O_WRONLY | O_APPEND, (struct weir_options){.mode = WEIR_NONE});
    struct iovec parts[100];
    for (int i = 0; i < 100; i++)
        parts[i] = (struct iovec){(char *)(uintptr_t)"xy", 2};
    fake_forget();
    check(weir_writev(s, parts, 100) == 200, "writev");
    check(fake_count_of(FAKE_WRITE) == 1, "%d writes", (int)fake_count_of(FAKE_WRITE));
    weir_close(s);
    fake_file_free(&f);
}

static void lengths_that_overflow(void)
{
    struct fake_file f;
    weir_stream *s = open_fake(&f, FAKE_FILE, O_WRONLY, (struct weir_options){0});
    char byte = 'x';
    struct iovec parts[3] = {{&byte, SIZE_MAX}, {&byte, 2}, {&byte, 1}};
    check(weir_writev(s, parts, 3) == -EINVAL, "a sum that overflows, as in writev(2)");
    check(weir_writev(s, parts, -1) == -EINVAL, "a negative count");
    check(weir_close(s) == 0 && f.size == 0, "nothing is written, and the error is not sticky");
    fake_file_free(&f);
}

static void records_without_separator_are_separate_writes(void)
{
    struct fake_file f;
    struct weir_options options = {.mode = WEIR_RECORD, .separator = WEIR_SEPARATOR_NONE};
    weir_stream *s = open_fake(&f, FAKE_PIPE, O_WRONLY, options);
    set_fault(FAKE_WRITE, EAGAIN, UINT64_MAX);
    check(weir_putrec(s, "one", 3) == 3, "the first record is pending");
    check(weir_putrec(s, "two", 3) == -EAGAIN, "the second record is not joined to the first");
    weir_putc(s, 't');
    check(weir_endrec(s) == -EAGAIN, "a record made of several calls is not joined either");
    clear_fault();
    fake_forget();
    check(weir_endrec(s) == 0, "endrec");
    check(fake_count_of(FAKE_WRITE) == 2 && file_is(&f, "onet"), "each record has its own write");
    weir_close(s);
    fake_file_free(&f);
}

/* The sync after a record does not write the incomplete next record, so that its parts stay in one write. */
static void sync_before_an_incomplete_record(enum weir_durability durability)
{
    struct fake_file f;
    struct weir_options options = {.mode = WEIR_RECORD, .durability = durability};
    weir_stream *s = open_fake(&f, FAKE_FILE, O_WRONLY, options);
    fake_forget();
    weir_put_str(s, "a;\nbegun");
    check(file_is(&f, "a;\n"), "the file has %.*s", (int)f.size, (char *)f.bytes);
    weir_put_str(s, "-rest\n");
    check(fake_count_of(FAKE_WRITE) == 2 && file_is(&f, "a;\nbegun-rest\n"), "%d writes", (int)fake_count_of(FAKE_WRITE));
    check(f.synced == f.size, "%d of %d bytes synced", (int)f.synced, (int)f.size);
    weir_put_str(s, "more");
    check(weir_sync(s, WEIR_DATA) == 0 && f.synced == 18, "an explicit sync writes an incomplete record too");
    weir_close(s);
    fake_file_free(&f);
}

static void data_sync_before_an_incomplete_record(void) { sync_before_an_incomplete_record(WEIR_DATA); }
static void whole_sync_before_an_incomplete_record(void) { sync_before_an_incomplete_record(WEIR_WHOLE); }

static void line_mode_from_full(void)
{
    struct fake_file f;
    weir_stream *s = open_fake(&f, FAKE_FILE, O_WRONLY, (struct weir_options){.mode = WEIR_FULL});
    weir_put_str(s, "one\ntwo");
    check(weir_set_mode(s, WEIR_LINE, 0) == 0 && file_is(&f, "one\n"),
          "the whole line is written, the rest is pending");
    weir_close(s);
    fake_file_free(&f);
}

static void file_is_unlocked_after_failed_lseek(void)
{
    struct fake_file f;
    weir_stream *s = open_fake(&f, FAKE_FILE, O_WRONLY, (struct weir_options){.flags = WEIR_LOCK_FILE});
    weir_put_str(s, "x");
    set_fault(FAKE_LSEEK, EIO, 1);
    check(weir_flush(s) == -EIO && !f.locked, "the file is still locked");
    clear_fault();
    weir_clear(s);
    check(weir_close(s) == 0 && file_is(&f, "x") && !f.locked, "close after the error");
    fake_file_free(&f);
}

/* ---- buffers ---- */

static void collector_keeps_its_bytes_when_shrunk(void)
{
    weir_stream *s = NULL;
    char *memory = NULL, text[9000];
    memset(text, 'x', sizeof text);
    weir_open_collector(&s, NULL);
    weir_write(s, text, sizeof text);
    check(weir_set_mode(s, WEIR_FULL, 10) == 0, "set_mode");
    ssize_t length = weir_memory(s, &memory);
    check(length == 9000 && memcmp(memory, text, 9000) == 0, "the collector lost bytes");
    weir_close(s);
}

static void begun_record_larger_than_the_new_buffer(void)
{
    struct fake_file f;
    weir_stream *s = open_fake(&f, FAKE_FILE, O_WRONLY, (struct weir_options){.mode = WEIR_RECORD});
    for (int i = 0; i < 9000; i++)
        weir_putc(s, 'r');
    check(weir_set_mode(s, WEIR_RECORD, 16) == 0, "set_mode");
    check(weir_close(s) == 0 && f.size == 9000, "%zu bytes", f.size);
    fake_file_free(&f);
}

static void callers_memory_for_reading(void)
{
    struct fake_file f;
    weir_stream *s = open_fake(&f, FAKE_FILE, O_RDONLY, (struct weir_options){0});
    fake_file_fill(&f, "0123456789", 10);
    char *memory = malloc(3 * 8192);
    memset(memory, '#', 3 * 8192);
    check(weir_set_buffer(s, WEIR_FULL, memory + 8192, 4) == 0, "set_buffer");
    check(weir_getc(s) == '0', "first byte");
    check(memcmp(memory + 8192, "0123", 4) == 0, "the bytes are in the caller's memory");
    for (int i = 0; i < 3 * 8192; i++)
        if ((i < 8192 || i >= 8196) && !check(memory[i] == '#', "byte %d outside the buffer has changed", i))
            break;
    weir_close(s);
    free(memory);
    fake_file_free(&f);
}

static void callers_memory_too_small_for_both(void)
{
    struct fake_file f;
    char memory[1];
    weir_stream *s = open_fake(&f, FAKE_FILE, O_RDWR, (struct weir_options){0});
    check(weir_set_buffer(s, WEIR_FULL, memory, 1) == -EINVAL, "set_buffer");
    check(weir_put_str(s, "abc") == 3 && weir_seek(s, 0, SEEK_SET) == 0 && weir_getc(s) == 'a',
          "the stream works as before");
    check(weir_close(s) == 0, "close");
    fake_file_free(&f);
}

/* ---- reading ---- */

static void long_record_in_the_buffer(void)
{
    struct fake_file f;
    weir_stream *s = open_fake(&f, FAKE_FILE, O_RDONLY, (struct weir_options){.max_record_bytes = 5});
    fake_file_fill(&f, "abc\nlonger\nx\n", 13);
    char *record;
    check(weir_getrec(s, &record) == 4, "the first fits");
    check(weir_getrec(s, &record) == -EMSGSIZE, "the second does not fit");
    check(weir_skip(s, 7) == 7 && weir_getrec(s, &record) == 2, "it can be skipped");
    weir_close(s);
    fake_file_free(&f);
}

static void read_error_after_half_a_record_is_sticky(void)
{
    struct fake_file f;
    weir_stream *s = open_fake(&f, FAKE_PIPE, O_RDONLY, (struct weir_options){0});
    fake_file_fill(&f, "half", 4);
    char *record;
    check(weir_peek(s, &record, 1) == 4, "read");
    set_fault(FAKE_READ, EIO, 1);
    check(weir_getrec(s, &record) == -EIO, "the failing read");
    check(weir_getrec(s, &record) == -EIO, "the error is sticky");
    weir_clear(s);
    check(weir_getrec(s, &record) == 4 && memcmp(record, "half", 4) == 0, "no byte is lost");
    weir_close(s);
    fake_file_free(&f);
}

static void fileno_with_failing_lseek(void)
{
    struct fake_file f;
    weir_stream *s = open_fake(&f, FAKE_FILE, O_RDONLY, (struct weir_options){0});
    fake_file_fill(&f, "abc", 3);
    check(weir_getc(s) == 'a', "read ahead");
    set_fault(FAKE_LSEEK, EIO, 1);
    check(weir_fileno(s) == -EIO, "fileno");
    clear_fault();
    check(weir_getc(s) == 'b', "the read-ahead bytes are kept");
    check(weir_fileno(s) == weir_fd(s) && fake_position(weir_fd(s)) == 2, "the read-ahead bytes are given back");
    weir_close(s);
    fake_file_free(&f);
}

static void close_gives_read_ahead_bytes_back(void)
{
    char path[] = "/tmp/weir-regression-XXXXXX";
    int fd = mkstemp(path), other = dup(fd);
    unlink(path);
    check(write(fd, "abc\ndef\n", 8) == 8 && lseek(fd, 0, SEEK_SET) == 0, "cannot write the file");
    weir_stream *s = NULL;
    char *record;
    weir_fdopen(&s, fd, NULL);
    check(weir_getrec(s, &record) == 4 && weir_close(s) == 0, "read a line and close");
    check(lseek(other, 0, SEEK_CUR) == 4, "the position after close is as after fclose(3)");
    close(other);
}

/* ---- syncing ---- */

static void failed_sync_of_a_record(void)
{
    struct fake_file f;
    weir_stream *s = open_fake(&f, FAKE_FILE, O_WRONLY, (struct weir_options){.durability = WEIR_DATA});
    set_fault(FAKE_FDATASYNC, EIO, 1);
    check(weir_putrec(s, "one", 3) == 3, "putrec");
    clear_fault();
    check(weir_putrec(s, "two", 3) == -EIO, "the next call returns the error");
    check(weir_error(s) == -EIO, "weir_error");
    weir_clear(s);
    check(weir_sync(s, WEIR_DATA) == -EIO, "sync after weir_clear");
    check(weir_close(s) == -EIO, "close after weir_clear");
    fake_file_free(&f);
}

static void put_back_without_end(void)
{
    size_t bytes = WEIR_BUFFER_MAX + 1;
    void *memory = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    check(memory != MAP_FAILED, "mmap: %m");
    weir_stream *s = NULL;
    check(weir_open_memory(&s, memory, bytes, NULL) == 0, "weir_open_memory");
    check(weir_ungetc(s, 'x') == -EMSGSIZE && weir_getc(s) == 0, "put back in front of 1 GiB");
    check(weir_close(s) == 0 && munmap(memory, bytes) == 0, "weir_close");
}

static void durability_that_the_sink_cannot_have(void)
{
    int ends[2];
    weir_stream *s = NULL;
    struct weir_options options = {.durability = WEIR_DATA};
    check(pipe(ends) == 0 && weir_fdopen(&s, ends[1], &options) == -EINVAL, "a pipe cannot be synced");
    struct weir_callbacks callbacks = {.write = (ssize_t (*)(void *, const void *, size_t))abort};
    check(weir_open_callbacks(&s, &callbacks, NULL, &options) == -EINVAL, "callbacks without a sync function");
    close(ends[0]);
    close(ends[1]);
}

static void sync_after_write_to_the_descriptor(void)
{
    struct fake_file f;
    weir_stream *s = open_fake(&f, FAKE_FILE, O_WRONLY, (struct weir_options){0});
    weir_put_str(s, "x");
    check(weir_sync(s, WEIR_DATA) == 0 && f.syncs == 1, "synced");
    check(weir_sync(s, WEIR_DATA) == 0 && f.syncs == 1, "a sync without new bytes makes no call");
    check(weir__kernel.write(weir_fileno(s), "y", 1) == 1, "write to the descriptor");
    check(weir_sync(s, WEIR_DATA) == 0 && f.syncs == 2, "%u syncs", f.syncs);
    check(weir_close(s) == 0, "close");
    fake_file_free(&f);
}

static void sync_with_unreadable_directory(void)
{
    struct fake_file f;
    weir_stream *s = open_fake(&f, FAKE_FILE, O_WRONLY, (struct weir_options){0});
    weir_put_str(s, "x");
    set_fault(FAKE_OPEN, EMFILE, 1);
    check(weir_sync(s, WEIR_WHOLE) == -EMFILE, "sync without the directory");
    clear_fault();
    check(weir_sync(s, WEIR_DATA) == 0 && weir_sync(s, WEIR_WHOLE) == 0, "EMFILE is not sticky");
    check(weir_close(s) == 0, "close");
    fake_file_free(&f);
}

/* ---- the tests ---- */

static const struct {
    const char *name;
    void (*test)(void);
} tests[] = {
#define TEST(name) {#name, name}
    TEST(text_after_a_begun_record),
    TEST(a_write_to_a_reading_stream_sticks),
    TEST(commit_while_the_sink_blocks),
    TEST(many_parts_are_one_write),
    TEST(lengths_that_overflow),
    TEST(records_without_separator_are_separate_writes),
    TEST(data_sync_before_an_incomplete_record),
    TEST(whole_sync_before_an_incomplete_record),
    TEST(line_mode_from_full),
    TEST(file_is_unlocked_after_failed_lseek),
    TEST(collector_keeps_its_bytes_when_shrunk),
    TEST(begun_record_larger_than_the_new_buffer),
    TEST(callers_memory_for_reading),
    TEST(callers_memory_too_small_for_both),
    TEST(long_record_in_the_buffer),
    TEST(read_error_after_half_a_record_is_sticky),
    TEST(fileno_with_failing_lseek),
    TEST(close_gives_read_ahead_bytes_back),
    TEST(failed_sync_of_a_record),
    TEST(put_back_without_end),
    TEST(durability_that_the_sink_cannot_have),
    TEST(sync_with_unreadable_directory),
    TEST(sync_after_write_to_the_descriptor),
};

int main(int count, char **arguments)
{
    const char *only = count > 1 ? arguments[1] : NULL;
    fake_install();
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        if (only && strcmp(only, tests[i].name) != 0)
            continue;
        check_begin("%s", tests[i].name);
        clear_fault();
        fake_forget();
        tests[i].test();
    }
    return check_finish("regressions");
}
