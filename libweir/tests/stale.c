/* stale.c: the bounded delay (stale_ms): the timer writes bytes in time and exactly once, during any activity of the
 * program's threads. The bound has slack, because other programs may run on the machine. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../src/private.h"
#include "support/check.h"

enum { STALE_MS = 20 };
#define SLACK_S (CHECK_SANITIZED ? 1.0 : 0.3)

static bool arrives(int fd, double seconds)
{
    struct pollfd in = {.fd = fd, .events = POLLIN};
    return poll(&in, 1, (int)(seconds * 1000)) == 1;
}

static size_t drop(int fd)
{
    char bytes[65536];
    size_t count = 0;
    while (arrives(fd, 0))
        count += (size_t)read(fd, bytes, sizeof bytes);
    return count;
}

static weir_stream *open_pipe(int ends[2], struct weir_options options)
{
    weir_stream *s = NULL;
    check(pipe2(ends, O_CLOEXEC) == 0 && weir_fdopen(&s, ends[1], &options) == 0, "fdopen");
    return s;
}

/* ---- in time ---- */

static void arrives_in_time(const char *name, struct weir_options options)
{
    check_begin("a byte arrives in time, %s", name);
    int ends[2];
    weir_stream *s = open_pipe(ends, options);
    double worst = 0;
    for (int i = 0; i < 40; i++) {
        sleep_seconds(0.001 * (i * 7 % 90)); /* meets the timer in each of its states */
        if (options.mode == WEIR_RECORD)
            check(weir_putrec(s, "", 0) == 0, "putrec");
        else
            check(weir_putc(s, 'x') == 'x', "putc");
        double start = seconds_now();
        if (!check(arrives(ends[0], 5), "the byte does not arrive"))
            break;
        double late = seconds_now() - start;
        worst = late > worst ? late : worst;
        check(drop(ends[0]) == 1, "one byte");
    }
    check(worst < options.stale_ms / 1000.0 + SLACK_S, "%.1f ms for a delay of %u", worst * 1000, options.stale_ms);
    printf("  at worst %.1f ms for a delay of %u\n", worst * 1000, options.stale_ms);
    struct weir_stats stats;
    check(weir_get_stats(s, &stats) == 0 && stats.stale_drains > 0, "the timer drained nothing");
    weir_close(s);
    close(ends[0]);
}

static void incomplete_record_stays(void)
{
    check_begin("the timer does not write an incomplete record");
    int ends[2];
    weir_stream *s = open_pipe(ends, (struct weir_options){.mode = WEIR_RECORD, .stale_ms = STALE_MS});
    weir_put_str(s, "one\nhalf");
    check(arrives(ends[0], 2) && drop(ends[0]) == 4, "the complete record arrives");
    check(!arrives(ends[0], 0.2), "the incomplete record arrives");
    weir_endrec(s);
    check(arrives(ends[0], 2) && drop(ends[0]) == 5, "the completed record does not arrive");
    weir_close(s);
    close(ends[0]);
}

/* ---- exactly once ---- */

struct received {
    int fd;
    uint64_t count, wrong;
};

static unsigned char byte_at(uint64_t i) { return (unsigned char)(i * 31 ^ i >> 8); }

static void *collect(void *argument)
{
    struct received *in = argument;
    unsigned char bytes[8192];
    for (ssize_t got; (got = read(in->fd, bytes, sizeof bytes)) > 0;)
        for (ssize_t i = 0; i < got; i++)
            in->wrong += bytes[i] != byte_at(in->count++);
    return NULL;
}

/* The program appends without taking the lock, and sometimes flushes or changes the delay. */
static void bytes_are_exact(size_t buffer_bytes, unsigned flags, bool unlocked)
{
    check_begin("bytes are exact, %zu bytes, flags %u%s", buffer_bytes, flags, unlocked ? ", weir_putc_unlocked" : "");
    enum { BYTES = CHECK_SANITIZED ? 300000 : 1000000 };
    int ends[2];
    pthread_t collector;
    struct weir_options options = {
        .mode = WEIR_FULL, .stale_ms = 1, .flags = flags, .buffer_bytes = buffer_bytes};
    weir_stream *s = open_pipe(ends, options);
    struct received in = {.fd = ends[0]};
    pthread_create(&collector, NULL, collect, &in);
    for (uint64_t i = 0; i < BYTES; i++) {
        if ((unlocked ? weir_putc_unlocked(s, byte_at(i)) : weir_putc(s, byte_at(i))) < 0)
            break;
        if (i % 100003 == 0)
            sleep_seconds(0.002);
        if (i % 77777 == 0)
            weir_flush(s);
        if (i % 33333 == 0)
            weir_set_stale(s, 1 + (unsigned)(i % 3));
    }
    check(weir_close(s) == 0, "close");
    pthread_join(collector, NULL);
    check(in.count == BYTES && in.wrong == 0, "%llu bytes, %llu wrong", (unsigned long long)in.count,
          (unsigned long long)in.wrong);
    close(ends[0]);
}

static void close_during_drain(void)
{
    check_begin("close while the timer drains");
    int ends[2];
    size_t sent = 0, got = 0;
    check(pipe2(ends, O_CLOEXEC) == 0, "pipe2");
    for (int i = 0; i < (CHECK_SANITIZED ? 300 : 2000); i++) {
        weir_stream *s;
        struct weir_options options = {.mode = WEIR_FULL, .stale_ms = 1, .flags = WEIR_KEEP_OPEN};
        check(weir_fdopen(&s, ends[1], &options) == 0, "fdopen");
        for (int n = 0; n <= i % 5; n++, sent++)
            weir_putc(s, 'x');
        sleep_seconds(0.0001 * (i % 14));
        check(weir_close(s) == 0, "close");
        got += drop(ends[0]);
    }
    check(got == sent, "%zu of %zu", got, sent);
    close(ends[0]);
    close(ends[1]);
}

/* ---- blocked and locked streams ---- */

static void blocked_stream_delays_no_other(bool is_socket)
{
    check_begin("a full %s with a sleeping reader does not delay other streams", is_socket ? "socket" : "pipe");
    int full[2], ends[2];
    weir_stream *blocked, *s;
    struct weir_options options = {.mode = WEIR_FULL, .stale_ms = 1, .buffer_bytes = 1 << 20};
    check((is_socket ? socketpair(AF_UNIX, SOCK_STREAM, 0, full) : pipe2(full, O_CLOEXEC)) == 0, "cannot make it");
    check(weir_fdopen(&blocked, full[1], &options) == 0, "fdopen");
    char *text = calloc(1, 800000);
    check(weir_write(blocked, text, 800000) == 800000, "write more than its capacity");
    sleep_seconds(0.1); /* until it is full */
    options.stale_ms = STALE_MS;
    s = open_pipe(ends, options);
    double worst = 0;
    for (int i = 0; i < 10; i++) {
        weir_putc(s, 'x');
        double start = seconds_now();
        if (!check(arrives(ends[0], 5), "the byte does not arrive"))
            break;
        worst = seconds_now() - start > worst ? seconds_now() - start : worst;
        drop(ends[0]);
    }
    check(worst < STALE_MS / 1000.0 + SLACK_S, "%.1f ms", worst * 1000);
    weir_close(s);
    size_t got = 0;
    while (arrives(full[0], 1))
        got += drop(full[0]);
    check(got == 800000, "%zu bytes arrived after the reader woke up", got);
    check(weir_close(blocked) == 0, "close");
    free(text);
    close(full[0]);
    close(ends[0]);
}

static void error_of_the_timer(void)
{
    check_begin("the program gets an error of the timer's write");
    weir_stream *s = NULL;
    struct weir_options options = {.mode = WEIR_FULL, .stale_ms = 5};
    check(weir_open(&s, "/dev/full", O_WRONLY, &options) == 0, "fdopen");
    check(weir_put_str(s, "lost") == 4, "put_str");
    for (int i = 0; i < 200 && weir_error(s) == 0; i++)
        sleep_seconds(0.01);
    check(weir_error(s) == -ENOSPC && weir_putc(s, 'x') == -ENOSPC, "the error is sticky");
    uint64_t lost = 0;
    check(weir_close_lost(s, &lost) == -ENOSPC && lost == 4, "%llu lost", (unsigned long long)lost);
}

/* The timer leaves a locked stream alone; the delay applies again after the unlock. */
static void locked_for_long(void)
{
    check_begin("a stream that is locked for longer than the delay");
    int ends[2];
    struct weir_options options = {.mode = WEIR_FULL, .stale_ms = STALE_MS, .flags = WEIR_THREADS};
    weir_stream *s = open_pipe(ends, options);
    weir_lock(s);
    weir_put_str(s, "together");
    check(!arrives(ends[0], 0.2), "the timer wrote bytes of a locked stream");
    weir_put_str(s, ", all of it");
    weir_unlock(s);
    check(arrives(ends[0], 2) && drop(ends[0]) == 19, "the bytes do not arrive after the unlock");
    weir_close(s);
    close(ends[0]);
}

int main(void)
{
    static const unsigned shared[] = {0, WEIR_THREADS};
    for (int i = 0; i < 2; i++) {
        struct weir_options options = {.mode = WEIR_FULL, .stale_ms = STALE_MS, .flags = shared[i]};
        arrives_in_time(i ? "full, threads" : "full", options);
        bytes_are_exact(0, shared[i], false);
        bytes_are_exact(5000, shared[i], false);
        bytes_are_exact(1, shared[i], false);
        bytes_are_exact(300, shared[i], !shared[i]);
    }
    arrives_in_time("line", (struct weir_options){.mode = WEIR_LINE, .stale_ms = STALE_MS});
    arrives_in_time("record", (struct weir_options){.mode = WEIR_RECORD, .stale_ms = STALE_MS});
    arrives_in_time("1 ms", (struct weir_options){.mode = WEIR_FULL, .stale_ms = 1});
    incomplete_record_stays();
    close_during_drain();
    blocked_stream_delays_no_other(false);
    blocked_stream_delays_no_other(true);
    error_of_the_timer();
    locked_for_long();
    return check_finish("stale");
}
