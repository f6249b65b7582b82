/* stdio.c: the C library's streams, compiled for glibc and for musl, with the library's default buffers. */
#include <stdio.h>
#include <stdlib.h>

#include "frame.h"

enum { LINE_BYTES = 4096 };

struct pair {
    FILE *in, *out;
};

static struct pair open_pair(const struct work *work)
{
    struct pair pair = { fdopen(open_in(work), "r"), fdopen(open_out(work), "w") };
    if (!pair.in || !pair.out)
        abort();
    return pair;
}

static long close_pair(struct pair pair, long units)
{
    int failed = ferror(pair.in) | ferror(pair.out);
    failed |= fclose(pair.in) | fclose(pair.out);
    return failed ? -1 : units;
}

/* Checks ferror too: musl discards its buffer after a failed write, and fclose then returns 0. */
static long close_out(FILE *out, long units)
{
    int failed = ferror(out);
    return fclose(out) != 0 || failed ? -1 : units;
}

static long bytes_locked(const struct work *work)
{
    struct pair pair = open_pair(work);
    long units = 0;
    for (int c; (c = getc(pair.in)) != EOF; units++)
        putc(c, pair.out);
    return close_pair(pair, units);
}

static long bytes_unlocked(const struct work *work)
{
    struct pair pair = open_pair(work);
    long units = 0;
    for (int c; (c = getc_unlocked(pair.in)) != EOF; units++)
        putc_unlocked(c, pair.out);
    return close_pair(pair, units);
}

static long putc_locked(const struct work *work)
{
    FILE *out = fdopen(open_out(work), "w");
    if (!out)
        abort();
    for (long i = 0; i < work->count; i++)
        putc((int)(i & 0x7f), out);
    return close_out(out, work->count);
}

static long lines_fgets(const struct work *work)
{
    struct pair pair = open_pair(work);
    char line[LINE_BYTES];
    long units = 0;
    for (; fgets(line, sizeof line, pair.in); units++)
        fputs(line, pair.out);
    return close_pair(pair, units);
}

static long lines_fgets_unlocked(const struct work *work)
{
    struct pair pair = open_pair(work);
    char line[LINE_BYTES];
    long units = 0;
    for (; fgets_unlocked(line, sizeof line, pair.in); units++)
        fputs_unlocked(line, pair.out);
    return close_pair(pair, units);
}

static long lines_getline(const struct work *work)
{
    struct pair pair = open_pair(work);
    char *line = NULL;
    size_t room = 0;
    long units = 0;
    for (ssize_t bytes; (bytes = getline(&line, &room, pair.in)) > 0; units++)
        fwrite(line, 1, (size_t)bytes, pair.out);
    free(line);
    return close_pair(pair, units);
}

static long formatted(const struct work *work)
{
    FILE *out = fdopen(open_out(work), "w");
    if (!out)
        abort();
    for (long i = 0; i < work->count; i++) {
        struct reading r = reading(i);
        fprintf(out, "%s %d %f\n", r.name, r.number, r.value);
    }
    return close_out(out, work->count);
}

static long blocks(const struct work *work)
{
    struct pair pair = open_pair(work);
    char *block = make_block(work->buffer_bytes);
    long units = 0;
    for (size_t bytes; (bytes = fread(block, 1, work->buffer_bytes, pair.in)) > 0; units += (long)bytes)
        fwrite(block, 1, bytes, pair.out);
    free(block);
    return close_pair(pair, units);
}

const struct contender contenders[] = {
    { "bytes", "locked", bytes_locked },
    { "bytes", "unlocked", bytes_unlocked },
    { "putc", "locked", putc_locked },
    { "lines", "fgets", lines_fgets },
    { "lines", "fgets-unlocked", lines_fgets_unlocked },
    { "lines", "getline", lines_getline },
    { "formatted", "printf", formatted },
    { "blocks", "fread", blocks },
    { NULL, NULL, NULL },
};
