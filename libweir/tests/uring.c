/* uring.c: WEIR_URING with the kernel's io_uring: files, appended files, pipes and sockets with slow readers get the
 * accepted bytes in order, while the program continues. --seeds=N. */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/call_series.h"
#include "support/test_dirs.h"

enum { STEPS = 80, LARGEST = 200000, LINES = 3000 };

static struct weir__kernel real;
static char path[300], memory[LARGEST + 3 * 4096];
static _Atomic unsigned submitted;

static int count_enter(int fd, unsigned submit, unsigned complete, unsigned flags)
{
    submitted += submit;
    return real.uring_enter(fd, submit, complete, flags);
}

/* ---- files ---- */

static void test_series(const char *name, int oflags, unsigned series_flags, uint64_t seeds)
{
    static const size_t sizes[] = {0, 100, 4096, 10000, 65536};
    static char callers[20000];
    unsigned before = submitted;
    check_begin("%s", name);
    for (uint64_t seed = 1; seed <= seeds && !check_wrong(); seed++) {
        struct model m;
        struct call_series series = {.model = &m, .random = random_from(seed), .path = path, .flags = series_flags};
        struct weir_options options = {.flags = WEIR_URING, .buffer_bytes = sizes[random_below(&series.random, 5)]};
        options.mode = random_below(&series.random, 3) ? WEIR_FULL : WEIR_RECORD;
        if (random_below(&series.random, 4) == 0) {
            options.buffer = callers;
            options.buffer_bytes = 2 + random_below(&series.random, sizeof callers - 2);
        }
        series.largest_write = LARGEST;
        series.position_limit = 2 << 20;
        series.memory = memory;
        unlink(path);
        model_init(&m, oflags & O_APPEND);
        int result = weir_open(&series.s, path, O_WRONLY | O_CREAT | oflags, &options);
        check(result == 0, "open returned %d", result);
        if (result < 0 || !run_series(&series, STEPS))
            printf("  seed %llu\n", (unsigned long long)seed);
        result = weir_close(series.s);
        check(result == 0, "close returned %d", result);
        model_matches_file(&m, path);
        model_free(&m);
    }
    check(submitted > before, "nothing was submitted to the ring");
}

/* ---- pipes and sockets ---- */

struct reader {
    int fd;
    size_t read_max;  /* bytes per read(2) */
    unsigned wait_us; /* before each read(2) */
    struct model got;
    pthread_t thread;
};

static void *read_slowly(void *argument)
{
    struct reader *r = argument;
    struct random random = random_from(r->read_max);
    char *piece = malloc(r->read_max);
    ssize_t got;
    do {
        sleep_seconds(r->wait_us / 1e6);
        got = read(r->fd, piece, 1 + random_below(&random, r->read_max));
        if (got > 0)
            model_write(&r->got, piece, (size_t)got);
    } while (got > 0);
    free(piece);
    return NULL;
}

static void start_reader(struct reader *r)
{
    model_init(&r->got, true);
    check(pthread_create(&r->thread, NULL, read_slowly, r) == 0, "cannot create a thread");
}

static void end_reader(struct reader *r, const struct model *m)
{
    pthread_join(r->thread, NULL);
    close(r->fd);
    size_t same = 0;
    while (same < r->got.size && same < m->size && r->got.bytes[same] == m->bytes[same])
        same++;
    check(same == m->size && r->got.size == m->size, "%zu bytes, not %zu; equal up to %zu", r->got.size, m->size, same);
    model_free(&r->got);
}

static void wait_until_writable(weir_stream *s)
{
    struct pollfd ready = {.fd = weir_fd(s), .events = POLLOUT};
    poll(&ready, 1, 1000);
}

/* Writes all bytes; waits if the descriptor is non-blocking and full. */
static void write_all(weir_stream *s, const char *from, size_t bytes)
{
    while (bytes > 0) {
        ssize_t written = weir_write(s, from, bytes);
        if (!check(written > 0 || written == -EAGAIN, "write returned %zd", written))
            return;
        if (written == -EAGAIN) {
            wait_until_writable(s);
            continue;
        }
        from += written;
        bytes -= (size_t)written;
    }
}

static void slow_reader(int kind, bool nonblocking, enum weir_mode mode, unsigned stale_ms)
{
    int ends[2];
    unsigned before = submitted;
    check((kind ? socketpair(AF_UNIX, SOCK_STREAM, 0, ends) : pipe(ends)) == 0, "cannot create a pipe or socket");
    if (nonblocking)
        fcntl(ends[1], F_SETFL, O_NONBLOCK);
    struct reader reader = {.fd = ends[0], .read_max = 9000, .wait_us = 150};
    struct weir_options options = {.flags = WEIR_URING, .mode = mode, .buffer_bytes = 16384, .stale_ms = stale_ms};
    struct model m;
    struct random r = random_from(7);
    weir_stream *s;
    model_init(&m, true);
    start_reader(&reader);
    check(weir_fdopen(&s, ends[1], &options) == 0, "fdopen");
    while (m.size < 3 << 20 && !check_wrong()) {
        size_t bytes = random_below(&r, 50) ? random_below(&r, 900) : random_below(&r, 60000);
        model_text(&r, memory, bytes);
        model_write(&m, memory, bytes);
        write_all(s, memory, bytes);
    }
    int result;
    while ((result = weir_close(s)) == -EAGAIN)
        wait_until_writable(s);
    check(result == 0 && submitted > before + 20, "close returned %d, %u writes submitted", result, submitted - before);
    end_reader(&reader, &m);
    model_free(&m);
}

/* A full pipe blocks no call before the second buffer is full, too; without WEIR_URING the first full buffer blocks. */
static void program_continues_while_the_pipe_is_full(void)
{
    int ends[2];
    struct weir_options options = {.flags = WEIR_URING, .buffer_bytes = 65536};
    struct reader reader = {.read_max = 5000};
    struct model m;
    struct weir_stats stats;
    struct random r = random_from(3);
    weir_stream *s;
    check(pipe(ends) == 0 && fcntl(ends[1], F_SETPIPE_SZ, 65536) > 0, "pipe");
    model_init(&m, true);
    model_text(&r, memory, 65536);
    model_write(&m, memory, 65536);
    check(write(ends[1], memory, 65536) == 65536, "the pipe can be filled");
    check(weir_fdopen(&s, ends[1], &options) == 0, "fdopen");
    alarm(20);
    for (int i = 0; i < 2 * 65536; i++) {
        char c = (char)('a' + i % 26);
        check(weir_putc(s, c) == c, "putc");
        model_write(&m, &c, 1);
    }
    alarm(0);
    weir_get_stats(s, &stats);
    check(stats.pending_bytes == 2 * 65536 && stats.written_bytes == 0,
          "%zu bytes pending", (size_t)stats.pending_bytes);
    reader.fd = ends[0];
    start_reader(&reader);
    check(weir_close(s) == 0, "close");
    end_reader(&reader, &m);
    model_free(&m);
}

/* After a short count, the rest and the bytes after it are written without a call by the program. */
static void bounded_delay(void)
{
    int ends[2];
    struct weir_options options = {.flags = WEIR_URING, .buffer_bytes = 20000, .stale_ms = 20};
    weir_stream *s;
    check(pipe(ends) == 0 && fcntl(ends[1], F_SETPIPE_SZ, 4096) > 0, "pipe");
    check(weir_fdopen(&s, ends[1], &options) == 0, "fdopen");
    for (int i = 0; i < 30000; i++)
        check(weir_putc(s, 'x') == 'x', "putc");
    size_t bytes = 0;
    alarm(20);
    while (bytes < 30000) {
        ssize_t got = read(ends[0], memory, 1000);
        if (!check(got > 0, "read returned %zd", got))
            break;
        bytes += (size_t)got;
    }
    alarm(0);
    check(weir_close(s) == 0, "close");
    close(ends[0]);
}

/* ---- several writers of one file ---- */

static void check_lines(int writers, int lines)
{
    FILE *f = fopen(path, "r");
    char line[100];
    int found = 0, next[4] = {0}, writer, number;
    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, "writer %d line %d of many.", &writer, &number) != 2 || writer >= writers || number != next[writer])
            break;
        next[writer]++;
        found++;
    }
    if (f)
        fclose(f);
    check(found == writers * lines, "%d lines of %d", found, writers * lines);
}

static void put_lines(weir_stream *s, int writer, int lines)
{
    for (int i = 0; i < lines; i++)
        check(weir_printf(s, "writer %d line %d of many.\n", writer, i) > 0, "printf");
}

/* If `shared`, all writers use one open file description and its position. */
static void several_writers(int oflags, bool shared)
{
    enum { WRITERS = 3 };
    struct weir_options options = {.flags = WEIR_URING, .mode = WEIR_RECORD, .buffer_bytes = 1000};
    weir_stream *s = NULL;
    unlink(path);
    if (shared)
        check(weir_open(&s, path, O_WRONLY | O_CREAT | oflags, &options) == 0, "open");
    for (int i = 0; i < WRITERS; i++) {
        if (fork() != 0)
            continue;
        if (!shared && weir_open(&s, path, O_WRONLY | O_CREAT | oflags, &options) < 0)
            _exit(1);
        put_lines(s, i, LINES);
        _exit(weir_close(s) < 0 || check_wrong());
    }
    int status;
    for (int i = 0; i < WRITERS; i++)
        check(wait(&status) > 0 && status == 0, "a writer ended with %d", status);
    if (s)
        weir_close(s);
    check_lines(WRITERS, LINES);
}

static weir_stream *shared_stream;

/* Returns how many calls failed. */
static void *put_as_thread(void *number)
{
    char line[100];
    intptr_t failed = 0;
    for (int i = 0; i < LINES; i++) {
        int length = snprintf(line, sizeof line, "writer %d line %d of many.", (int)(intptr_t)number, i);
        failed += weir_putrec(shared_stream, line, (size_t)length) != length;
    }
    return (void *)failed;
}

static void several_threads(unsigned stale_ms)
{
    struct weir_options options = {.flags = WEIR_URING | WEIR_THREADS, .buffer_bytes = 3000, .stale_ms = stale_ms};
    pthread_t threads[3];
    unlink(path);
    check(weir_open(&shared_stream, path, O_WRONLY | O_CREAT, &options) == 0, "open");
    for (intptr_t i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, put_as_thread, (void *)i);
    void *failed;
    for (int i = 0; i < 3; i++)
        check(pthread_join(threads[i], &failed) == 0 && !failed, "%d calls failed", (int)(intptr_t)failed);
    check(weir_close(shared_stream) == 0, "close");
    check_lines(3, LINES);
}

/* ---- errors ---- */

static void file_size_limit(void)
{
    struct rlimit was, limit;
    struct weir_stats stats;
    struct weir_options options = {.flags = WEIR_URING, .buffer_bytes = 10000};
    weir_stream *s;
    unlink(path);
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &was);
    limit = was;
    limit.rlim_cur = 33333;
    check(weir_open(&s, path, O_WRONLY | O_CREAT, &options) == 0, "open");
    setrlimit(RLIMIT_FSIZE, &limit);
    int i = 0, result = 0;
    size_t bytes = 0;
    for (; i < LINES && result >= 0; i++, bytes += result > 0 ? (size_t)result : 0)
        result = weir_printf(s, "writer 0 line %d of many.\n", i);
    i -= result < 0;
    weir_get_stats(s, &stats);
    setrlimit(RLIMIT_FSIZE, &was);
    check(result == -EFBIG && weir_flush(s) == -EFBIG, "%d", result);
    check(stats.written_bytes == 33333 && stats.pending_bytes == bytes - 33333, "%zu written, %zu pending of %zu",
          (size_t)stats.written_bytes, (size_t)stats.pending_bytes, bytes);
    weir_clear(s);
    check(weir_tell(s) == (int64_t)bytes, "tell returned %lld, not %zu", (long long)weir_tell(s), bytes);
    check(weir_close(s) == 0, "close");
    check_lines(1, i);
}

static void lost_bytes_leave_no_gap(void)
{
    struct rlimit was, limit;
    struct weir_options options = {.flags = WEIR_URING | WEIR_KEEP_OPEN, .buffer_bytes = 10000};
    weir_stream *s;
    uint64_t lost;
    unlink(path);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    getrlimit(RLIMIT_FSIZE, &was);
    limit = was;
    limit.rlim_cur = 15000;
    check(weir_fdopen(&s, fd, &options) == 0, "fdopen");
    setrlimit(RLIMIT_FSIZE, &limit);
    for (int i = 0; i < 25000; i++)
        weir_putc(s, 'x');
    int result = weir_close_lost(s, &lost);
    setrlimit(RLIMIT_FSIZE, &was);
    check(result == -EFBIG && lost == 10000, "%d, %llu lost", result, (unsigned long long)lost);
    check(lseek(fd, 0, SEEK_CUR) == 15000, "the position is %lld", (long long)lseek(fd, 0, SEEK_CUR));
    close(fd);
}

static _Atomic int signals;
static void count_signal(int number)
{
    (void)number;
    signals++;
}

static void reader_closes_the_pipe(void)
{
    int ends[2];
    struct weir_options options = {.flags = WEIR_URING, .buffer_bytes = 8192};
    weir_stream *s;
    uint64_t lost;
    check(pipe(ends) == 0 && weir_fdopen(&s, ends[1], &options) == 0, "pipe");
    signal(SIGPIPE, count_signal);
    signals = 0;
    close(ends[0]);
    int result = 0, accepted = 0;
    for (; accepted < 100000 && result >= 0; accepted += result >= 0)
        result = weir_putc(s, 'x');
    check(result == -EPIPE && signals > 0, "%d, %d signals", result, (int)signals);
    check(accepted == 2 * 8192, "%d accepted", accepted);
    check(weir_close_lost(s, &lost) == -EPIPE && lost == (uint64_t)accepted, "%llu lost", (unsigned long long)lost);
    signal(SIGPIPE, SIG_DFL);
}

static void program_closes_the_descriptor(void)
{
    struct weir_options options = {.flags = WEIR_URING, .buffer_bytes = 1000};
    weir_stream *s;
    uint64_t lost;
    unlink(path);
    check(weir_open(&s, path, O_WRONLY | O_CREAT, &options) == 0, "open");
    for (int i = 0; i < 2500; i++)
        weir_putc(s, 'x');
    check(weir_sync(s, WEIR_KERNEL) == 0, "weir_sync before the descriptor is closed");
    close(weir_fd(s));
    int result = 0, i = 0;
    for (; i < 5000 && result >= 0; i += result >= 0)
        result = weir_putc(s, 'y');
    check(result == -EBADF && weir_error(s) == -EBADF, "%d", result);
    check(weir_close_lost(s, &lost) == -EBADF && lost == (uint64_t)i, "%llu lost of %d", (unsigned long long)lost, i);
}

static void positions(int oflags)
{
    struct weir_options options = {.flags = WEIR_URING, .buffer_bytes = 1000};
    weir_stream *s;
    unlink(path);
    check(weir_open(&s, path, O_WRONLY | O_CREAT | oflags, &options) == 0, "open");
    for (int i = 0; i < 10000; i++) {
        check(weir_putc(s, 'x') == 'x', "putc");
        if (i % 137 == 0)
            check(weir_tell(s) == i + 1, "after %d bytes: %lld", i + 1, (long long)weir_tell(s));
    }
    check(weir_fileno(s) >= 0 && lseek(weir_fd(s), 0, SEEK_CUR) == 10000, "weir_fileno writes everything");
    check(weir_seek(s, 0, SEEK_END) == 10000 && weir_close(s) == 0, "seek to the end and close");
}

int main(int count, char **arguments)
{
    uint64_t seeds = check_option(count, arguments, "seeds", 60);
    char parameters[120] = {0};
    real = weir__kernel;
    int ring = real.uring_setup(1, parameters);
    if (ring < 0) {
        check_begin("all tests");
        check_skip("this process may not use io_uring, or the kernel has none");
        return check_finish("uring");
    }
    close(ring);
    weir__kernel.uring_enter = count_enter;
    snprintf(path, sizeof path, "%s/file", test_dir_make());
#define TEST(call) check_begin(#call); call
    test_series("file", 0, SERIES_SETS_MODE, seeds);
    test_series("file with seeks", 0, SERIES_SEEKS, seeds);
    test_series("appended", O_APPEND, SERIES_SETS_MODE, seeds);
    TEST(slow_reader(0, false, WEIR_FULL, 0));
    TEST(slow_reader(0, false, WEIR_RECORD, 0));
    TEST(slow_reader(0, true, WEIR_FULL, 0));
    TEST(slow_reader(0, false, WEIR_FULL, 5));
    TEST(slow_reader(0, true, WEIR_FULL, 5));
    TEST(slow_reader(1, false, WEIR_FULL, 0));
    TEST(slow_reader(1, true, WEIR_FULL, 5));
    TEST(program_continues_while_the_pipe_is_full());
    TEST(bounded_delay());
    TEST(several_writers(O_APPEND, false));
    TEST(several_writers(O_APPEND, true));
    TEST(several_writers(0, true));
    TEST(several_threads(0));
    TEST(several_threads(3));
    TEST(file_size_limit());
    TEST(lost_bytes_leave_no_gap());
    TEST(reader_closes_the_pipe());
    TEST(program_closes_the_descriptor());
    TEST(positions(0));
    TEST(positions(O_APPEND));
    return check_finish("uring");
}
