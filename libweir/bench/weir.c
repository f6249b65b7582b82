/* weir.c: the contenders of libweir. */
#include <stdlib.h>
#include <weir.h>

#include "frame.h"

struct pair {
    weir_stream *in, *out;
};

static weir_stream *stream(int fd, unsigned flags)
{
    weir_stream *s;
    struct weir_options options = { .flags = flags };
    if (weir_fdopen(&s, fd, &options) < 0)
        abort();
    return s;
}

static struct pair open_pair(const struct work *work, unsigned flags)
{
    return (struct pair){ stream(open_in(work), flags), stream(open_out(work), flags) };
}

/* The loops ignore write errors: errors are sticky, and weir_close returns them. */
static long close_pair(struct pair pair, long units)
{
    int failed = weir_error(pair.in) | weir_close(pair.in) | weir_close(pair.out);
    return failed ? -1 : units;
}

static long copy_bytes(struct pair pair)
{
    long units = 0;
    for (int c; (c = weir_getc(pair.in)) >= 0; units++)
        weir_putc(pair.out, c);
    return close_pair(pair, units);
}

static long bytes(const struct work *work) { return copy_bytes(open_pair(work, 0)); }
static long bytes_threads(const struct work *work) { return copy_bytes(open_pair(work, WEIR_THREADS)); }

/* The caller holds both locks during the loop. */
static long bytes_held(const struct work *work)
{
    struct pair pair = open_pair(work, WEIR_THREADS);
    long units = 0;
    weir_lock(pair.in);
    weir_lock(pair.out);
    for (int c; (c = weir_getc_unlocked(pair.in)) >= 0; units++)
        weir_putc_unlocked(pair.out, c);
    weir_unlock(pair.out);
    weir_unlock(pair.in);
    return close_pair(pair, units);
}

/* Cursors into both buffers, in registers: the same loop as bytes_registers of hand.c. */
static long bytes_cursor(const struct work *work)
{
    struct pair pair = open_pair(work, 0);
    const char *from = NULL, *from_end = NULL;
    char *to = NULL, *to_start = NULL, *to_end = NULL;
    ssize_t here = 0;
    long units = 0;
    for (;;) {
        if (from == from_end) {
            char *start;
            weir_skip(pair.in, (size_t)here);
            if ((here = weir_peek(pair.in, &start, 1)) <= 0)
                break;
            units += here;
            from = start, from_end = from + here;
        }
        if (to == to_end) {
            weir_commit(pair.out, (size_t)(to - to_start));
            ssize_t room = weir_reserve(pair.out, &to_start, 1);
            if (room <= 0)
                return -1;
            to = to_start, to_end = to + room;
        }
        *to++ = *from++;
    }
    weir_commit(pair.out, (size_t)(to - to_start));
    return close_pair(pair, here < 0 ? -1 : units);
}

static long put_bytes(const struct work *work, unsigned flags)
{
    weir_stream *out = stream(open_out(work), flags);
    for (long i = 0; i < work->count; i++)
        weir_putc(out, (int)(i & 0x7f));
    return weir_close(out) == 0 ? work->count : -1;
}

static long putc_plain(const struct work *work) { return put_bytes(work, 0); }
static long putc_threads(const struct work *work) { return put_bytes(work, WEIR_THREADS); }

static long lines(const struct work *work)
{
    struct pair pair = open_pair(work, 0);
    char *line;
    long units = 0;
    for (ssize_t length; (length = weir_getrec(pair.in, &line)) > 0; units++)
        weir_write(pair.out, line, (size_t)length);
    return close_pair(pair, units);
}

static long formatted_printf(const struct work *work)
{
    weir_stream *out = stream(open_out(work), 0);
    for (long i = 0; i < work->count; i++) {
        struct reading r = reading(i);
        weir_printf(out, "%s %d %f\n", r.name, r.number, r.value);
    }
    return weir_close(out) == 0 ? work->count : -1;
}

static long formatted_put(const struct work *work)
{
    weir_stream *out = stream(open_out(work), 0);
    for (long i = 0; i < work->count; i++) {
        struct reading r = reading(i);
        weir_put_str(out, r.name);
        weir_putc(out, ' ');
        weir_put_i64(out, r.number);
        weir_putc(out, ' ');
        weir_put_f64(out, r.value, 6);
        weir_putc(out, '\n');
    }
    return weir_close(out) == 0 ? work->count : -1;
}

static long blocks(const struct work *work)
{
    struct pair pair = open_pair(work, 0);
    char *block = make_block(work->buffer_bytes);
    long units = 0;
    for (ssize_t got; (got = weir_read(pair.in, block, work->buffer_bytes)) > 0; units += got)
        weir_write(pair.out, block, (size_t)got);
    free(block);
    return close_pair(pair, units);
}

/* Returns libweir's default buffer size as units: the driver gives the hand-written loops buffers of this size. */
static long default_buffer(const struct work *work)
{
    struct weir_stats stats;
    struct pair pair = open_pair(work, 0);
    weir_putc(pair.out, weir_getc(pair.in));
    weir_get_stats(pair.out, &stats);
    long written = (long)stats.buffer_bytes;
    weir_get_stats(pair.in, &stats);
    return close_pair(pair, (long)stats.read_buffer_bytes == written ? written : -1);
}

const struct contender contenders[] = {
    { "bytes", "getc-putc", bytes },
    { "bytes", "threads", bytes_threads },
    { "bytes", "held", bytes_held },
    { "bytes", "cursor", bytes_cursor },
    { "putc", "plain", putc_plain },
    { "putc", "threads", putc_threads },
    { "lines", "getrec-write", lines },
    { "formatted", "printf", formatted_printf },
    { "formatted", "put", formatted_put },
    { "blocks", "read-write", blocks },
    { "buffer", "default", default_buffer },
    { NULL, NULL, NULL },
};
