/* regressions_errors.c: one test for each fixed bug after a call that failed. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "../src/private.h"
#include "support/check.h"
#include "support/fake_kernel.h"

static weir_stream *open_fake(struct fake_file *f, int oflags, struct weir_options options, size_t bytes)
{
    weir_stream *s = NULL;
    fake_file_make(f, FAKE_FILE);
    int fd = fake_open(f, oflags);
    for (size_t i = 0; i < bytes; i++)
        weir__kernel.write(fd, &"0123456789"[i % 10], 1);
    weir__kernel.lseek(fd, 0, SEEK_SET);
    fake_forget();
    check(weir_fdopen(&s, fd, &options) == 0, "fdopen");
    return s;
}

static void set_fault(enum fake_call call, int error, uint64_t times)
{
    struct fake_fault fault = {1, times, error, false, 1u << call};
    fake_plan(&fault);
}

/* A seek clears a read error, also one within the read-ahead bytes. */
static void seek_after_a_read_error(void)
{
    struct fake_file f;
    char bytes[100], *from;
    weir_stream *s = open_fake(&f, O_RDWR, (struct weir_options){.buffer_bytes = 100}, 200);
    for (int target = 0; target <= 150; target += 50) {
        check(weir_seek(s, 0, SEEK_SET) == 0 && weir_read(s, bytes, 5) == 5, "read");
        fake_forget();
        set_fault(FAKE_READ, EIO, 100);
        check(weir_getrec(s, &from) == 95 || weir_getrec(s, &from) == -EIO, "the record is not complete");
        check(weir_error(s) == -EIO, "the read failed");
        fake_plan(NULL);
        check(weir_seek(s, target, SEEK_SET) == target && weir_error(s) == 0, "seek to %d: %d", target, weir_error(s));
        size_t rest = target > 100 ? 200 - (size_t)target : 100;
        check(weir_read(s, bytes, 100) == (ssize_t)rest, "read from %d", target);
    }
    check(weir_close(s) == 0, "close");
    fake_file_free(&f);
}

/* A change of the mode that fails leaves the incomplete record as it is. */
static void set_mode_fails(int error, size_t bytes, bool pending)
{
    struct fake_file f;
    struct weir_options options = {.mode = WEIR_RECORD, .buffer_bytes = 64};
    check_begin("weir_set_mode with %zu bytes fails with %d, %d complete records", bytes, error, pending);
    weir_stream *s = open_fake(&f, O_WRONLY, options, 0);
    if (pending)
        weir_putrec(s, "first", 5);
    weir_put_str(s, "begun-");
    fake_forget();
    set_fault(FAKE_WRITE, error, 100);
    check(weir_set_mode(s, WEIR_NONE, bytes) == -error && weir_get_mode(s) == WEIR_RECORD, "set_mode");
    check(weir__state(s)->record_bytes == 6 && weir__pending(s) == (pending ? 6 : 0), "the record is incomplete");
    fake_plan(NULL);
    weir_clear(s);
    check(weir_flush(s) == 0 && weir_set_mode(s, WEIR_RECORD, 0) == 0, "flush");
    weir_put_str(s, "again-");
    fake_forget();
    set_fault(FAKE_WRITE, error, 100);
    check(weir_set_mode(s, WEIR_NONE, bytes) == -error, "set_mode");
    fake_plan(NULL);
    weir_clear(s);
    check(weir_putrec(s, "end", 3) == 3 && weir_set_mode(s, WEIR_NONE, bytes) == 0, "without a fault");
    check(weir_putc(s, '.') == '.' && weir_close(s) == 0, "close");
    const char *expected = pending ? "first\nbegun-again-end\n." : "begun-again-end\n.";
    check(f.size == strlen(expected) && memcmp(f.bytes, expected, f.size) == 0, "%.*s", (int)f.size, (char *)f.bytes);
    fake_file_free(&f);
}

int main(void)
{
    fake_install();
    check_begin("seek_after_a_read_error");
    seek_after_a_read_error();
    for (int i = 0; i < 8; i++)
        set_mode_fails(i & 1 ? ENOSPC : EAGAIN, i & 2 ? 128 : 0, i & 4);
    return check_finish("regressions_errors");
}
