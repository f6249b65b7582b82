/* stale.c: the bounded delay: bytes arrive in time and exactly, whatever the program's threads are doing
 * when the timer comes. The bound is checked generously: other programs run on this machine too. */
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
    check(pipe2(ends, O_CLOEXEC) == 0 && weir_fdopen(&s, ends[1], &options) == 0, "opens");
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
        sleep_seconds(0.001 * (i * 7 % 90)); /* the timer sleeps, is awake, has let the stream go … */
        if (options.mode == WEIR_RECORD)
            check(weir_putrec(s, "", 0) == 0, "accepted");
        else
            check(weir_putc(s, 'x') == 'x', "accepted");
        double start = seconds_now();
        if (!check(arrives(ends[0], 5), "it does not come"))
            break;
        double late = seconds_now() - start;
        worst = late > worst ? late : worst;
        check(drop(ends[0]) == 1, "one byte");
    }
    check(worst < options.stale_ms / 1000.0 + SLACK_S, "%.1f ms for a delay of %u", worst * 1000, options.stale_ms);
    printf("  at worst %.1f ms for a delay of %u\n", worst * 1000, options.stale_ms);
    struct weir_stats stats;
    check(weir_get_stats(s, &stats) == 0 && stats.stale_drains > 0, "by the timer");
    weir_close(s);
    close(ends[0]);
}

static void half_a_record_waits(void)
{
    check_begin("half a record waits for its end");
    int ends[2];
    weir_stream *s = open_pipe(ends, (struct weir_options){.mode = WEIR_RECORD, .stale_ms = STALE_MS});
    weir_put_str(s, "one\nhalf");
    check(arrives(ends[0], 2) && drop(ends[0]) == 4, "the whole one comes");
    check(!arrives(ends[0], 0.2), "the half one does not");
    weir_endrec(s);
    check(arrives(ends[0], 2) && drop(ends[0]) == 5, "now it comes");
    weir_close(s);
    close(ends[0]);
}

/* ---- exactly ---- */

struct stream_of_bytes {
    int fd;
    uint64_t count, wrong;
};

static unsigned char byte_at(uint64_t i) { return (unsigned char)(i * 31 ^ i >> 8); }

static void *collect(void *argument)
{
    struct stream_of_bytes *in = argument;
    unsigned char bytes[8192];
    for (ssize_t got; (got = read(in->fd, bytes, sizeof bytes)) > 0;)
        for (ssize_t i = 0; i < got; i++)
            in->wrong += bytes[i] != byte_at(in->count++);
    return NULL;
}

/* The program never locks: it only appends, and now and then something else. */
static void bytes_are_exact(size_t buffer_bytes, unsigned flags, bool unlocked)
{
    check_begin("bytes are exact, %zu bytes, flags %u%s", buffer_bytes, flags, unlocked ? ", weir_putc_unlocked" : "");
    enum { BYTES = CHECK_SANITIZED ? 300000 : 1000000 };
    int ends[2];
    pthread_t collector;
    weir_stream *s = open_pipe(ends, (struct weir_options){.mode = WEIR_FULL, .stale_ms = 1, .flags = flags, .buffer_bytes = buffer_bytes});
    struct stream_of_bytes in = {.fd = ends[0]};
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
    check(weir_close(s) == 0, "closes");
    pthread_join(collector, NULL);
    check(in.count == BYTES && in.wrong == 0, "%llu bytes, %llu wrong", (unsigned long long)in.count, (unsigned long long)in.wrong);
    close(ends[0]);
}

static void closing_while_it_works(void)
{
    check_begin("closing while the timer works");
    int ends[2];
    size_t sent = 0, got = 0;
    check(pipe2(ends, O_CLOEXEC) == 0, "a pipe");
    for (int i = 0; i < (CHECK_SANITIZED ? 300 : 2000); i++) {
        weir_stream *s;
        struct weir_options options = {.mode = WEIR_FULL, .stale_ms = 1, .flags = WEIR_KEEP_OPEN};
        check(weir_fdopen(&s, ends[1], &options) == 0, "opens");
        for (int n = 0; n <= i % 5; n++, sent++)
            weir_putc(s, 'x');
        sleep_seconds(0.0001 * (i % 14));
        check(weir_close(s) == 0, "closes");
        got += drop(ends[0]);
    }
    check(got == sent, "%zu of %zu", got, sent);
    close(ends[0]);
    close(ends[1]);
}

/* ---- whoever else is slow ---- */

static void reader_is_asleep(bool is_socket)
{
    check_begin("a full %s whose reader sleeps holds nobody else up", is_socket ? "socket" : "pipe");
    int full[2], ends[2];
    weir_stream *stuck, *s;
    struct weir_options options = {.mode = WEIR_FULL, .stale_ms = 1, .buffer_bytes = 1 << 20};
    check((is_socket ? socketpair(AF_UNIX, SOCK_STREAM, 0, full) : pipe2(full, O_CLOEXEC)) == 0, "made");
    check(weir_fdopen(&stuck, full[1], &options) == 0, "opens");
    char *text = calloc(1, 800000);
    check(weir_write(stuck, text, 800000) == 800000, "more than it takes");
    sleep_seconds(0.1); /* by now it is full */
    options.stale_ms = STALE_MS;
    s = open_pipe(ends, options);
    double worst = 0;
    for (int i = 0; i < 10; i++) {
        weir_putc(s, 'x');
        double start = seconds_now();
        if (!check(arrives(ends[0], 5), "it does not come"))
            break;
        worst = seconds_now() - start > worst ? seconds_now() - start : worst;
        drop(ends[0]);
    }
    check(worst < STALE_MS / 1000.0 + SLACK_S, "%.1f ms", worst * 1000);
    weir_close(s);
    size_t got = 0;
    while (arrives(full[0], 1))
        got += drop(full[0]);
    check(got == 800000, "when it reads, all comes by itself: %zu", got);
    check(weir_close(stuck) == 0, "closes");
    free(text);
    close(full[0]);
    close(ends[0]);
}

static void error_of_the_timer(void)
{
    check_begin("an error that the timer met is the program's");
    weir_stream *s = NULL;
    struct weir_options options = {.mode = WEIR_FULL, .stale_ms = 5};
    check(weir_open(&s, "/dev/full", O_WRONLY, &options) == 0, "opens");
    check(weir_put_str(s, "lost") == 4, "accepted");
    for (int i = 0; i < 200 && weir_error(s) == 0; i++)
        sleep_seconds(0.01);
    check(weir_error(s) == -ENOSPC && weir_putc(s, 'x') == -ENOSPC, "it sticks");
    uint64_t lost = 0;
    check(weir_close_lost(s, &lost) == -ENOSPC && lost == 4, "%llu lost", (unsigned long long)lost);
}

/* The pages of a stream that is locked for long are not looked at; its delay holds when it is let go. */
static void locked_for_long(void)
{
    check_begin("a stream that is locked for long");
    int ends[2];
    weir_stream *s = open_pipe(ends, (struct weir_options){.mode = WEIR_FULL, .stale_ms = STALE_MS, .flags = WEIR_THREADS});
    weir_lock(s);
    weir_put_str(s, "together");
    check(!arrives(ends[0], 0.2), "the timer keeps out");
    weir_put_str(s, ", all of it");
    weir_unlock(s);
    check(arrives(ends[0], 2) && drop(ends[0]) == 19, "then it comes");
    weir_close(s);
    close(ends[0]);
}

int main(void)
{
    static const unsigned shared[] = {0, WEIR_THREADS};
    for (int i = 0; i < 2; i++) {
        arrives_in_time(i ? "full, threads" : "full", (struct weir_options){.mode = WEIR_FULL, .stale_ms = STALE_MS, .flags = shared[i]});
        bytes_are_exact(0, shared[i], false);
        bytes_are_exact(5000, shared[i], false);
        bytes_are_exact(1, shared[i], false);
        bytes_are_exact(300, shared[i], !shared[i]);
    }
    arrives_in_time("line", (struct weir_options){.mode = WEIR_LINE, .stale_ms = STALE_MS});
    arrives_in_time("record", (struct weir_options){.mode = WEIR_RECORD, .stale_ms = STALE_MS});
    arrives_in_time("1 ms", (struct weir_options){.mode = WEIR_FULL, .stale_ms = 1});
    half_a_record_waits();
    closing_while_it_works();
    reader_is_asleep(false);
    reader_is_asleep(true);
    error_of_the_timer();
    locked_for_long();
    return check_finish("stale");
}
