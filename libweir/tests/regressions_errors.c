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
        weir__kernel.write(fd, "0123456789" + i % 10, 1);
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

int main(void)
{
    fake_install();
    check_begin("seek_after_a_read_error");
    seek_after_a_read_error();
    return check_finish("regressions_errors");
}
