/* sfio.c: sfio by Vo and Korn, which get-sfio builds. */
#include <sfio.h>

#include "frame.h"

struct pair {
    Sfio_t *in, *out;
};

static Sfio_t *writer(const struct work *work)
{
    return sfnew(NULL, NULL, (size_t)SF_UNBOUND, open_out(work), SF_WRITE);
}

static struct pair open_pair(const struct work *work)
{
    return (struct pair){ sfnew(NULL, NULL, (size_t)SF_UNBOUND, open_in(work), SF_READ), writer(work) };
}

static long close_pair(struct pair pair, long units)
{
    int failed = sferror(pair.in) | sferror(pair.out);
    failed |= sfclose(pair.in) | sfclose(pair.out);
    return failed ? -1 : units;
}

static long bytes(const struct work *work)
{
    struct pair pair = open_pair(work);
    long units = 0;
    for (int c; (c = sfgetc(pair.in)) >= 0; units++)
        sfputc(pair.out, c);
    return close_pair(pair, units);
}

static long lines(const struct work *work)
{
    struct pair pair = open_pair(work);
    long units = 0;
    for (const char *line; (line = sfgetr(pair.in, '\n', 0)); units++)
        sfwrite(pair.out, line, (size_t)sfvalue(pair.in));
    return close_pair(pair, units);
}

static long formatted(const struct work *work)
{
    Sfio_t *out = writer(work);
    for (long i = 0; i < work->count; i++) {
        struct reading r = reading(i);
        sfprintf(out, "%s %d %f\n", r.name, r.number, r.value);
    }
    return sfclose(out) == 0 ? work->count : -1;
}

const struct contender contenders[] = {
    { "bytes", "getc-putc", bytes },
    { "lines", "getr-write", lines },
    { "formatted", "printf", formatted },
    { NULL, NULL, NULL },
};
