/* regressions.c: one test for each bug that was found once; those of the delay and of children are in
 * regressions_processes.c. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../src/private.h"
#include "support/check.h"
#include "support/fake_kernel.h"

static weir_stream *open_fake(struct fake_file *f, enum fake_kind kind, int oflags, struct weir_options options)
{
    weir_stream *s = NULL;
    fake_file_make(f, kind);
    check(weir_fdopen(&s, fake_open(f, oflags), &options) == 0, "opens");
    return s;
}

static bool holds(const struct fake_file *f, const char *text)
{
    return f->size == strlen(text) && memcmp(f->bytes, text, f->size) == 0;
}

static void spoil(enum fake_call call, int error, uint64_t times)
{
    struct fake_fault fault = {1, times, error, false, 1u << call};
    fake_plan(&fault);
}

static void heal(void) { fake_plan(NULL); }

/* ---- writing ---- */

static void text_behind_a_begun_record(void)
{
    struct fake_file f;
    weir_stream *s = open_fake(&f, FAKE_FILE, O_WRONLY, (struct weir_options){.mode = WEIR_RECORD});
    weir_putc(s, 'a');
    weir_put_str(s, "bc");
    weir_put_u64(s, 4);
    weir_endrec(s);
    check(weir_close(s) == 0 && holds(&f, "abc4\n"), "the file has %.*s", (int)f.size, (char *)f.bytes);
    fake_file_free(&f);
}

static void commit_that_cannot_be_written_yet(void)
{
    struct fake_file f;
    weir_stream *s = open_fake(&f, FAKE_PIPE, O_WRONLY, (struct weir_options){.mode = WEIR_NONE});
    char *to;
    check(weir_reserve(s, &to, 3) >= 3, "room");
    memcpy(to, "abc", 3);
    spoil(FAKE_WRITE, EAGAIN, 1);
    check(weir_commit(s, 3) == 0, "accepted, so well");
    heal();
    check(weir_close(s) == 0 && holds(&f, "abc"), "once");
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
    check(weir_writev(s, parts, 100) == 200, "all");
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
    check(weir_writev(s, parts, 3) == -EINVAL, "as writev(2)");
    check(weir_writev(s, parts, -1) == -EINVAL, "no negative count");
    check(weir_close(s) == 0 && f.size == 0, "nothing written, and it does not stick");
    fake_file_free(&f);
}

static void records_without_separator_stay_apart(void)
{
    struct fake_file f;
    struct weir_options options = {.mode = WEIR_RECORD, .separator = WEIR_SEPARATOR_NONE};
    weir_stream *s = open_fake(&f, FAKE_PIPE, O_WRONLY, options);
    spoil(FAKE_WRITE, EAGAIN, UINT64_MAX);
    check(weir_putrec(s, "one", 3) == 3, "the first waits");
    check(weir_putrec(s, "two", 3) == -EAGAIN, "the second is not joined to it");
    weir_putc(s, 't');
    check(weir_endrec(s) == -EAGAIN, "nor is it in pieces");
    heal();
    fake_forget();
    check(weir_endrec(s) == 0, "now");
    check(fake_count_of(FAKE_WRITE) == 2 && holds(&f, "onet"), "each in its write");
    weir_close(s);
    fake_file_free(&f);
}

static void line_mode_from_full(void)
{
    struct fake_file f;
    weir_stream *s = open_fake(&f, FAKE_FILE, O_WRONLY, (struct weir_options){.mode = WEIR_FULL});
    weir_put_str(s, "one\ntwo");
    check(weir_set_mode(s, WEIR_LINE, 0) == 0 && holds(&f, "one\n"), "the whole line goes, the rest waits");
    weir_close(s);
    fake_file_free(&f);
}

static void lock_goes_when_the_end_is_not_found(void)
{
    struct fake_file f;
    weir_stream *s = open_fake(&f, FAKE_FILE, O_WRONLY, (struct weir_options){.flags = WEIR_LOCK_FILE});
    weir_put_str(s, "x");
    spoil(FAKE_LSEEK, EIO, 1);
    check(weir_flush(s) == -EIO && !f.locked, "the file is not left locked");
    heal();
    weir_clear(s);
    check(weir_close(s) == 0 && holds(&f, "x") && !f.locked, "later it goes out");
    fake_file_free(&f);
}

/* ---- buffers ---- */

static void collector_does_not_shrink_below_what_it_has(void)
{
    weir_stream *s = NULL;
    char *memory = NULL, text[9000];
    memset(text, 'x', sizeof text);
    weir_open_collector(&s, NULL);
    weir_write(s, text, sizeof text);
    check(weir_set_mode(s, WEIR_FULL, 10) == 0, "accepted");
    ssize_t length = weir_memory(s, &memory);
    check(length == 9000 && memcmp(memory, text, 9000) == 0, "all is there");
    weir_close(s);
}

static void begun_record_larger_than_the_new_buffer(void)
{
    struct fake_file f;
    weir_stream *s = open_fake(&f, FAKE_FILE, O_WRONLY, (struct weir_options){.mode = WEIR_RECORD});
    for (int i = 0; i < 9000; i++)
        weir_putc(s, 'r');
    check(weir_set_mode(s, WEIR_RECORD, 16) == 0, "accepted");
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
    check(weir_set_buffer(s, WEIR_FULL, memory + 8192, 4) == 0, "taken");
    check(weir_getc(s) == '0', "first byte");
    check(memcmp(memory + 8192, "0123", 4) == 0, "it lies in the caller's memory");
    for (int i = 0; i < 3 * 8192; i++)
        if ((i < 8192 || i >= 8196) && !check(memory[i] == '#', "byte %d outside of it is changed", i))
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
    check(weir_set_buffer(s, WEIR_FULL, memory, 1) == -EINVAL, "refused");
    check(weir_put_str(s, "abc") == 3 && weir_seek(s, 0, SEEK_SET) == 0 && weir_getc(s) == 'a', "as it was");
    check(weir_close(s) == 0, "closes");
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
    check(weir_getrec(s, &record) == -EMSGSIZE, "the second does not");
    check(weir_skip(s, 7) == 7 && weir_getrec(s, &record) == 2, "it can be left out");
    weir_close(s);
    fake_file_free(&f);
}

static void read_error_stays_behind_half_a_record(void)
{
    struct fake_file f;
    weir_stream *s = open_fake(&f, FAKE_PIPE, O_RDONLY, (struct weir_options){0});
    fake_file_fill(&f, "half", 4);
    char *record;
    check(weir_peek(s, &record, 1) == 4, "read");
    spoil(FAKE_READ, EIO, 1);
    check(weir_getrec(s, &record) == -EIO, "the error");
    check(weir_getrec(s, &record) == -EIO, "until it is cleared");
    weir_clear(s);
    check(weir_getrec(s, &record) == 4 && memcmp(record, "half", 4) == 0, "nothing was lost");
    weir_close(s);
    fake_file_free(&f);
}

static void fileno_that_cannot_give_back(void)
{
    struct fake_file f;
    weir_stream *s = open_fake(&f, FAKE_FILE, O_RDONLY, (struct weir_options){0});
    fake_file_fill(&f, "abc", 3);
    check(weir_getc(s) == 'a', "read ahead");
    spoil(FAKE_LSEEK, EIO, 1);
    check(weir_fileno(s) == -EIO, "the error");
    heal();
    check(weir_getc(s) == 'b', "what was read ahead is still there");
    check(weir_fileno(s) == weir_fd(s) && fake_position(weir_fd(s)) == 2, "given back");
    weir_close(s);
    fake_file_free(&f);
}

static void closing_a_borrowed_descriptor_gives_back(void)
{
    char path[] = "/tmp/weir-regression-XXXXXX";
    int fd = mkstemp(path), other = dup(fd);
    unlink(path);
    check(write(fd, "abc\ndef\n", 8) == 8 && lseek(fd, 0, SEEK_SET) == 0, "a file");
    weir_stream *s = NULL;
    char *record;
    weir_fdopen(&s, fd, NULL);
    check(weir_getrec(s, &record) == 4 && weir_close(s) == 0, "a line");
    check(lseek(other, 0, SEEK_CUR) == 4, "as fclose(3)");
    close(other);
}

/* ---- syncing ---- */

static void sync_that_each_record_needs(void)
{
    struct fake_file f;
    weir_stream *s = open_fake(&f, FAKE_FILE, O_WRONLY, (struct weir_options){.durability = WEIR_DATA});
    spoil(FAKE_FDATASYNC, EIO, 1);
    check(weir_putrec(s, "one", 3) == 3, "accepted");
    heal();
    check(weir_putrec(s, "two", 3) == -EIO, "the next call has the error");
    check(weir_error(s) == -EIO, "it is known");
    weir_clear(s);
    check(weir_sync(s, WEIR_DATA) == -EIO, "for ever");
    check(weir_close(s) == -EIO, "also at the end");
    fake_file_free(&f);
}

static void promise_that_cannot_be_kept(void)
{
    int ends[2];
    weir_stream *s = NULL;
    struct weir_options options = {.durability = WEIR_DATA};
    check(pipe(ends) == 0 && weir_fdopen(&s, ends[1], &options) == -EINVAL, "no pipe can be synced");
    struct weir_callbacks callbacks = {.write = (ssize_t (*)(void *, const void *, size_t))abort};
    check(weir_open_callbacks(&s, &callbacks, NULL, &options) == -EINVAL, "nor without a function for it");
    close(ends[0]);
    close(ends[1]);
}

static void written_by_hand_and_synced(void)
{
    struct fake_file f;
    weir_stream *s = open_fake(&f, FAKE_FILE, O_WRONLY, (struct weir_options){0});
    weir_put_str(s, "x");
    check(weir_sync(s, WEIR_DATA) == 0 && f.syncs == 1, "synced");
    check(weir_sync(s, WEIR_DATA) == 0 && f.syncs == 1, "nothing new, so no call");
    check(weir__kernel.write(weir_fileno(s), "y", 1) == 1, "by hand");
    check(weir_sync(s, WEIR_DATA) == 0 && f.syncs == 2, "%u syncs", f.syncs);
    check(weir_close(s) == 0, "closes");
    fake_file_free(&f);
}

static void directory_that_cannot_be_opened(void)
{
    struct fake_file f;
    weir_stream *s = open_fake(&f, FAKE_FILE, O_WRONLY, (struct weir_options){0});
    weir_put_str(s, "x");
    spoil(FAKE_OPEN, EMFILE, 1);
    check(weir_sync(s, WEIR_WHOLE) == -EMFILE, "not well");
    heal();
    check(weir_sync(s, WEIR_DATA) == 0 && weir_sync(s, WEIR_WHOLE) == 0, "but no fault of the device");
    check(weir_close(s) == 0, "closes");
    fake_file_free(&f);
}

/* ---- all ---- */

static const struct {
    const char *name;
    void (*test)(void);
} tests[] = {
#define TEST(name) {#name, name}
    TEST(text_behind_a_begun_record),
    TEST(commit_that_cannot_be_written_yet),
    TEST(many_parts_are_one_write),
    TEST(lengths_that_overflow),
    TEST(records_without_separator_stay_apart),
    TEST(line_mode_from_full),
    TEST(lock_goes_when_the_end_is_not_found),
    TEST(collector_does_not_shrink_below_what_it_has),
    TEST(begun_record_larger_than_the_new_buffer),
    TEST(callers_memory_for_reading),
    TEST(callers_memory_too_small_for_both),
    TEST(long_record_in_the_buffer),
    TEST(read_error_stays_behind_half_a_record),
    TEST(fileno_that_cannot_give_back),
    TEST(closing_a_borrowed_descriptor_gives_back),
    TEST(sync_that_each_record_needs),
    TEST(promise_that_cannot_be_kept),
    TEST(directory_that_cannot_be_opened),
    TEST(written_by_hand_and_synced),
};

int main(int count, char **arguments)
{
    const char *only = count > 1 ? arguments[1] : NULL;
    fake_install();
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        if (only && strcmp(only, tests[i].name) != 0)
            continue;
        check_begin("%s", tests[i].name);
        heal();
        fake_forget();
        tests[i].test();
    }
    return check_finish("regressions");
}
