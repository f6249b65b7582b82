/* calls.c: single output calls, compiled with the C library's <stdio.h> and with libweir's. */
#include <stdio.h>
#include <stdlib.h>

#include "frame.h"

/* Closes the output and returns the calls that were made, or -1. */
static long close_out(FILE *out, long calls)
{
    int failed = ferror(out);
    return fclose(out) != 0 || failed ? -1 : calls;
}

static FILE *open_stream(const struct work *work)
{
    FILE *out = fdopen(open_out(work), "w");
    if (!out)
        abort();
    return out;
}

static long literal(const struct work *work)
{
    FILE *before = stdout;
    stdout = open_stream(work);
    for (long i = 0; i < work->count; i++)
        printf("hello world\n");
    long calls = close_out(stdout, work->count);
    stdout = before;
    return calls;
}

/* Defines a contender that makes the call for each reading r. */
#define CALLS(name, call)                           \
    static long name(const struct work *work)       \
    {                                               \
        FILE *out = open_stream(work);              \
        for (long i = 0; i < work->count; i++) {    \
            struct reading r = reading(i);          \
            (void)r;                                \
            call;                                   \
        }                                           \
        return close_out(out, work->count);         \
    }

CALLS(string, fprintf(out, "%s\n", r.name))
CALLS(integer, fprintf(out, "%d\n", r.number))
CALLS(digits_15, fprintf(out, "%.15g\n", r.value))
CALLS(digits_17, fprintf(out, "%.17g\n", r.value))
CALLS(put_string, fputs(r.name, out))
CALLS(write_8, fwrite(&r.value, sizeof r.value, 1, out))

const struct contender contenders[] = {
    { "calls", "literal", literal },     { "calls", "string", string },   { "calls", "integer", integer },
    { "calls", "15 digits", digits_15 }, { "calls", "17 digits", digits_17 }, { "calls", "fputs", put_string },
    { "calls", "fwrite", write_8 },      { NULL, NULL, NULL },
};
