/* hand.c: lower bounds: loops written by hand for speed only. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "frame.h"

static int write_all(int fd, const char *from, size_t bytes)
{
    while (bytes > 0) {
        ssize_t done = write(fd, from, bytes);
        if (done < 0 && errno != EINTR)
            return -1;
        if (done > 0)
            from += done, bytes -= (size_t)done;
    }
    return 0;
}

/* ---- the state in memory: a lower bound for getc and putc ---- */

struct stream {
    int fd;
    size_t bytes;
    unsigned char *at, *limit, *base;
};

static struct stream *make(int fd, size_t bytes, int full)
{
    struct stream *s = malloc(sizeof *s);
    unsigned char *base = (unsigned char *)make_block(bytes);
    if (!s)
        abort();
    *s = (struct stream){ fd, bytes, base, full ? base + bytes : base, base };
    return s;
}

/* Not inlined, so that the compiler cannot keep the structure in registers across the calls. */
__attribute__((noinline)) static int refill(struct stream *s)
{
    ssize_t bytes = read(s->fd, s->base, s->bytes);
    s->at = s->base;
    s->limit = s->base + (bytes > 0 ? bytes : 0);
    return bytes > 0 ? *s->at++ : -1;
}

__attribute__((noinline)) static int drain(struct stream *s)
{
    int result = write_all(s->fd, (char *)s->base, (size_t)(s->at - s->base));
    s->at = s->base;
    return result;
}

__attribute__((noinline)) static int drain_and_put(struct stream *s, int c)
{
    return drain(s) < 0 ? -1 : (*s->at++ = (unsigned char)c);
}

static inline int get(struct stream *s) { return s->at < s->limit ? *s->at++ : refill(s); }
static inline int put(struct stream *s, int c)
{
    return s->at < s->limit ? (*s->at++ = (unsigned char)c) : drain_and_put(s, c);
}

static int end(struct stream *s)
{
    int result = close(s->fd);
    free(s->base);
    free(s);
    return result;
}

static long bytes_memory(const struct work *work)
{
    struct stream *in = make(open_in(work), work->buffer_bytes, 0);
    struct stream *out = make(open_out(work), work->buffer_bytes, 1);
    long units = 0;
    for (int c; (c = get(in)) >= 0; units++)
        if (put(out, c) < 0)
            return -1;
    int failed = drain(out);
    return (failed | end(in) | end(out)) ? -1 : units;
}

/* ---- the state in registers ---- */

static long bytes_registers(const struct work *work)
{
    int in = open_in(work), out = open_out(work);
    size_t size = work->buffer_bytes;
    char *input = make_block(size), *output = make_block(size);
    const char *from = input, *from_end = input;
    char *to = output, *to_end = output + size;
    long units = 0;
    for (;;) {
        if (from == from_end) {
            ssize_t bytes = read(in, input, size);
            if (bytes <= 0)
                break;
            units += bytes;
            from = input, from_end = input + bytes;
        }
        if (to == to_end) {
            if (write_all(out, output, size) < 0)
                return -1;
            to = output;
        }
        *to++ = *from++;
    }
    int failed = write_all(out, output, (size_t)(to - output)) | close(in) | close(out);
    free(input);
    free(output);
    return failed ? -1 : units;
}

/* ---- lines: memchr in, memcpy out ---- */

/* Moves the incomplete line to the front and reads more after it. Returns the end of the data, which is the end of the
 * incomplete line at the end of the file. */
static char *read_more(int fd, char *front, size_t size, const char *line, size_t bytes)
{
    memmove(front, line, bytes);
    ssize_t more = read(fd, front + bytes, size - bytes);
    return front + bytes + (more > 0 ? more : 0);
}

/* One function, so that the state stays in registers. Ends at a line longer than the buffer. */
static long lines_memchr(const struct work *work)
{
    int in = open_in(work), out = open_out(work);
    size_t size = work->buffer_bytes;
    char *input = make_block(size), *output = make_block(size);
    char *at = input, *limit = input, *to = output, *to_end = output + size;
    long units = 0;
    for (;;) {
        const char *newline = memchr(at, '\n', (size_t)(limit - at));
        if (!newline) {
            size_t incomplete = (size_t)(limit - at);
            limit = read_more(in, input, size, at, incomplete);
            at = input;
            if (limit == input + incomplete)
                break;
            continue;
        }
        size_t bytes = (size_t)(newline + 1 - at);
        if (bytes > (size_t)(to_end - to)) {
            if (write_all(out, output, (size_t)(to - output)) < 0)
                return -1;
            to = output;
        }
        memcpy(to, at, bytes);
        to += bytes, at += bytes;
        units++;
    }
    int failed = write_all(out, output, (size_t)(to - output)) | write_all(out, at, (size_t)(limit - at));
    failed |= close(in) | close(out);
    free(input);
    free(output);
    return failed ? -1 : units;
}

/* ---- only the system calls ---- */

static long blocks(const struct work *work)
{
    int in = open_in(work), out = open_out(work);
    char *block = make_block(work->buffer_bytes);
    long units = 0;
    for (ssize_t bytes; (bytes = read(in, block, work->buffer_bytes)) > 0; units += bytes)
        if (write_all(out, block, (size_t)bytes) < 0)
            return -1;
    free(block);
    return (close(in) | close(out)) ? -1 : units;
}

const struct contender contenders[] = {
    { "bytes", "memory", bytes_memory },
    { "bytes", "registers", bytes_registers },
    { "lines", "memchr", lines_memchr },
    { "blocks", "system-calls", blocks },
    { NULL, NULL, NULL },
};
