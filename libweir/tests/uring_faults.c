/* uring_faults.c: WEIR_URING over a ring with every possible result of a write, at every write of a series: no byte is
 * lost, doubled or reordered, and the stream reports errors. --seeds=N. */
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/fake_ring.h"
#include "support/call_series.h"
#include "support/test_dirs.h"

enum { STEPS = 60, LARGEST = 9000, WRITES_MAX = 60 };

static char path[300], memory[LARGEST + 3 * 4096];
static struct weir__kernel real;

/* The stream's own write(2) calls: with short counts, or with an error after the ring's write was hit. */
static int plain_error(void);
static size_t write_max; /* 0: no short counts */

static ssize_t maybe_pwrite(int fd, const void *from, size_t bytes, off_t offset)
{
    if (plain_error()) {
        errno = plain_error();
        return -1;
    }
    bytes = write_max && bytes > write_max ? write_max : bytes;
    return offset < 0 ? real.write(fd, from, bytes) : real.pwrite(fd, from, bytes, offset);
}
static ssize_t maybe_write(int fd, const void *from, size_t bytes) { return maybe_pwrite(fd, from, bytes, -1); }
static ssize_t maybe_writev(int fd, const struct iovec *iov, int count)
{
    if (plain_error() || write_max)
        return maybe_write(fd, iov->iov_base, iov->iov_len);
    return real.writev(fd, iov, count);
}

struct fault {
    int result;
    bool refused, is_sticky;
    int plain_error; /* errno of the write(2) that follows */
};

static const struct fault faults[] = {
    {1, false, false, 0},          {500, false, false, 0},        {0, false, false, 0},
    {-EINTR, false, false, 0},     {-EAGAIN, false, false, 0},    {-ECANCELED, false, false, 0},
    {-EINVAL, false, false, 0},    {-EOPNOTSUPP, false, false, 0},
    {-EAGAIN, true, false, 0},     {-EBUSY, true, false, 0},      {-EPERM, true, false, 0},
    {-ENOSYS, true, false, 0},     {-EBADF, true, false, 0},      {-ENOMEM, true, false, 0},
    {-EIO, false, true, 0},        {-ENOSPC, false, true, 0},     {-EDQUOT, false, true, 0},
    {1, false, true, ENOSPC},      {-EINTR, false, true, EIO},    {-EPIPE, false, true, EPIPE},
    {-EFBIG, false, true, EFBIG},  {-EAGAIN, false, false, EAGAIN},
};
enum { FAULTS = sizeof faults / sizeof *faults };

static const struct fault *fault; /* NULL: none, or removed */

static bool has_hit(void) { return fault && fake_ring.hits; }
static int plain_error(void) { return has_hit() ? fault->plain_error : 0; }
static int error_of(const struct fault *f) { return f->plain_error ? -f->plain_error : f->result; }

static bool is_from_fault(struct call_series *r, const char *call, int64_t result)
{
    (void)r;
    if (!has_hit() || !error_of(fault))
        return false;
    return result >= 0 || check(result == error_of(fault), "%s returned %lld, not %d", call, (long long)result,
                                error_of(fault));
}

/* Checks that every accepted byte is in the file or pending. */
static void check_accounting(const struct call_series *r)
{
    struct weir_stats stats;
    struct stat status;
    weir_get_stats(r->s, &stats);
    real.fstat(weir_fd(r->s), &status);
    check((uint64_t)status.st_size + stats.pending_bytes == r->model->size, "%lld in the file, %llu pending of %zu",
          (long long)status.st_size, (unsigned long long)stats.pending_bytes, r->model->size);
    check(stats.written_bytes + stats.pending_bytes == r->model->size, "%llu written, %llu pending of %zu",
          (unsigned long long)stats.written_bytes, (unsigned long long)stats.pending_bytes, r->model->size);
}

static void remove_fault(weir_stream *s)
{
    fault = NULL;
    fake_ring.at = 0;
    weir_clear(s);
}

/* Checks after each step that the stream's error, if any, is the fault's and sticky, and removes it. Returns true if
 * there was an error. */
static bool check_error(const struct call_series *r)
{
    int error = weir_error(r->s);
    if (error == 0)
        return false;
    check(has_hit() && fault->is_sticky && error == error_of(fault), "weir_error returned %d", error);
    check(weir_putc(r->s, 'x') == error && weir_flush(r->s) == error, "the error is sticky");
    remove_fault(r->s);
    return true;
}

/* Closes the stream; the fault may hit its last writes. Returns true if weir_close_lost reported an error. */
static bool close_and_check(const struct call_series *r)
{
    uint64_t lost = 0;
    int result = weir_close_lost(r->s, &lost);
    if (result == -EAGAIN && has_hit()) {
        remove_fault(r->s);
        result = weir_close_lost(r->s, &lost);
    }
    bool late = result < 0 && has_hit() && fault->is_sticky && result == error_of(fault);
    check(result == 0 ? lost == 0 : late && lost > 0, "close returned %d, %llu lost", result, (unsigned long long)lost);
    r->model->size -= late ? lost : 0;
    if (!late || !(r->flags & SERIES_SEEKS)) /* the lost bytes need not be the last of the file */
        model_matches_file(r->model, path);
    check(fake_ring.open == 0, "%d rings are still open", fake_ring.open);
    return late;
}

static struct weir_options prepare(struct random *r, uint64_t seed, uint64_t at, const struct fault *f)
{
    static const size_t sizes[] = {1, 7, 100, 1000, 4096};
    struct weir_options options = {.flags = WEIR_URING, .buffer_bytes = sizes[random_below(r, 5)]};
    options.mode = random_below(r, 3) ? WEIR_FULL : WEIR_RECORD;
    fake_ring_reset();
    fake_ring.at_once = seed % 4 == 0;
    fake_ring.at = at;
    fake_ring.times = f && seed % 3 == 0 ? 2 : 1;
    fake_ring.result = f ? f->result : 0;
    fake_ring.refused = f && f->refused;
    fault = f;
    write_max = seed % 5 == 0 ? 333 : 0;
    unlink(path);
    return options;
}

/* Returns the number of writes submitted to the ring. */
static uint64_t run(uint64_t seed, int oflags, unsigned series_flags, uint64_t at, const struct fault *f)
{
    struct model m;
    struct call_series series = {.model = &m, .random = random_from(seed), .path = path};
    struct weir_options options = prepare(&series.random, seed, at, f);
    series.flags = series_flags | SERIES_SKIPS_FILE_CHECK;
    series.largest_write = LARGEST;
    series.position_limit = 1 << 20;
    series.memory = memory;
    series.excuses = is_from_fault;
    model_init(&m, oflags & O_APPEND);
    int result = weir_open(&series.s, path, O_WRONLY | O_CREAT | oflags, &options);
    if (!check(result == 0, "open returned %d", result))
        return 0;
    bool reported = false;
    for (int i = 0; i < STEPS && !check_wrong() && run_series(&series, 1); i++) {
        if (!(series_flags & SERIES_SEEKS))
            check_accounting(&series);
        reported = check_error(&series) || reported;
    }
    uint64_t writes = fake_ring.started;
    reported = close_and_check(&series) || reported;
    check(reported || !f || !f->is_sticky || !fake_ring.hits, "no call reported the error");
    if (check_wrong())
        printf("  seed %llu, %zu bytes, mode %d: result of write %llu: %d\n", (unsigned long long)seed,
               options.buffer_bytes, (int)options.mode, (unsigned long long)at, f ? f->result : 0);
    model_free(&m);
    return writes;
}

static void every_write(const char *name, int oflags, unsigned series_flags, uint64_t seeds)
{
    uint64_t writes = 0, hits = 0;
    for (int i = -1; i < FAULTS; i++) {
        check_begin("%s: %s%d, then %d", name, i < 0 ? "no fault " : faults[i].refused ? "refused " : "result ",
                    i < 0 ? 0 : faults[i].result, i < 0 ? 0 : faults[i].plain_error);
        for (uint64_t seed = 1; seed <= seeds && !check_wrong(); seed++) {
            uint64_t count = run(seed, oflags, series_flags, 0, NULL);
            writes += count;
            for (uint64_t at = 1; i >= 0 && at <= count && at <= WRITES_MAX && !check_wrong(); at++) {
                run(seed, oflags, series_flags, at, &faults[i]);
                hits += fake_ring.hits;
            }
        }
        check(writes > 0 && (i < 0 || hits > 0), "no write was in flight");
    }
}

static int by_flush(weir_stream *s) { return weir_flush(s); }
static int by_sync(weir_stream *s) { return weir_sync(s, WEIR_KERNEL); }
static int by_share(weir_stream *s) { return weir_share(s); }
static int by_fileno(weir_stream *s) { return weir_fileno(s) < 0; }
static int by_seek(weir_stream *s) { return weir_seek(s, 7, SEEK_SET) != 7; }
static int by_mode(weir_stream *s) { return weir_set_mode(s, WEIR_NONE, 0); }
static int by_large_write(weir_stream *s) { return weir_write(s, memory, 1000) != 1000; }
static int by_flush_all(weir_stream *s)
{
    (void)s;
    return weir_flush_all();
}

/* Checks that the call waits: when it returns, no write is in flight and the bytes are in the file. */
static void call_waits(int (*call)(weir_stream *s))
{
    for (int extra = 0; extra < 2; extra++) { /* with 0 or 10 bytes in the other buffer */
        weir_stream *s;
        struct stat status;
        struct weir_options options = {.flags = WEIR_URING, .buffer_bytes = 100};
        fake_ring_reset();
        unlink(path);
        check(weir_open(&s, path, O_WRONLY | O_CREAT, &options) == 0, "open");
        for (int i = 0; i < 100 + extra * 10; i++)
            weir_putc(s, 'x');
        char *to;
        check(weir_reserve(s, &to, 1) > 0 && fake_ring.in_flight, "a buffer is in flight");
        check(call(s) == 0 && !fake_ring.in_flight, "a write is in flight after the call");
        check(stat(path, &status) == 0 && status.st_size >= 100 + extra * 10, "%lld bytes", (long long)status.st_size);
        check(weir_close(s) == 0, "close");
    }
}

static void no_ring(int error)
{
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct model m;
        weir_stream *s;
        struct weir_options options = {.flags = WEIR_URING, .buffer_bytes = 100};
        struct random r = random_from(seed);
        fake_ring_reset();
        fake_ring.setup_errno = error;
        unlink(path);
        model_init(&m, false);
        check(weir_open(&s, path, O_WRONLY | O_CREAT, &options) == 0, "open");
        struct call_series series = {.s = s, .model = &m, .random = r, .path = path};
        series.flags = SERIES_SEEKS | SERIES_SETS_MODE;
        series.largest_write = LARGEST;
        series.position_limit = 1 << 20;
        series.memory = memory;
        run_series(&series, STEPS);
        check(weir_close(s) == 0 && fake_ring.started == 0, "close without a ring");
        model_matches_file(&m, path);
        model_free(&m);
    }
}

int main(int count, char **arguments)
{
    uint64_t seeds = check_option(count, arguments, "seeds", 8);
    snprintf(path, sizeof path, "%s/file", test_dir_make());
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    real = weir__kernel;
    weir__kernel.write = maybe_write;
    weir__kernel.pwrite = maybe_pwrite;
    weir__kernel.writev = maybe_writev;
    fake_ring_install();
    every_write("file", 0, 0, seeds);
    every_write("file with seeks", 0, SERIES_SEEKS | SERIES_SETS_MODE, seeds);
    every_write("appended", O_APPEND, SERIES_SETS_MODE, seeds);
#define WAITS(call) check_begin("%s waits", #call); call_waits(call)
    WAITS(by_flush);
    WAITS(by_sync);
    WAITS(by_share);
    WAITS(by_fileno);
    WAITS(by_seek);
    WAITS(by_mode);
    WAITS(by_large_write);
    WAITS(by_flush_all);
    check_begin("no io_uring: ENOSYS");
    no_ring(ENOSYS);
    check_begin("no io_uring: EPERM");
    no_ring(EPERM);
    check_begin("no io_uring: ENOMEM");
    no_ring(ENOMEM);
    return check_finish("uring_faults");
}
