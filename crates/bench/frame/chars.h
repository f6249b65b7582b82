/*
 * The loops of the methods that move one byte per library call, as fgetc(3) and fputc(3) do. The loops are
 * inlined with a constant get and put, so a macro of the C library (getc_unlocked) is expanded in the loop.
 */
#ifndef WEIR_BENCH_CHARS_H
#define WEIR_BENCH_CHARS_H

#include "loops.h"
#include "streams.h"

typedef int wb_get_char(FILE *from);
typedef int wb_put_char(int byte, FILE *to);

/* Runs WB_COPY, WB_TRANSLATE (map: not NULL) or WB_READ (put: NULL). */
WB_INLINE int wb_chars_through(struct wb_run *run, wb_get_char *get, wb_put_char *put,
                               const unsigned char *map)
{
    struct wb_streams *streams = run->method_data;
    FILE *const in = streams->in, *const out = streams->out;
    const uint64_t bytes = run->job->bytes;
    uint64_t moved = 0;
    while (moved < bytes) {
        int byte = get(in);
        if (byte == EOF)
            break;
        if (map)
            byte = map[byte];
        if (!put)
            *run->record = (unsigned char)byte; /* keeps the compiler from removing the unused read */
        else if (put(byte, out) == EOF)
            break;
        moved++;
        if (wb_passed(run, moved) != 0)
            break;
    }
    if (moved == bytes && run->to_end && run->result->status == WB_OK)
        (void)get(in);
    wb_streams_errors(run);
    return wb_moved(run, moved, moved, "read");
}

/* WB_WRITE and WB_LOG: writes the `line` bytes of text at the record repeatedly. */
WB_INLINE int wb_chars_text(struct wb_run *run, wb_put_char *put, uint64_t line)
{
    struct wb_streams *streams = run->method_data;
    FILE *const out = streams->out;
    const unsigned char *const text = run->record;
    const uint64_t bytes = run->job->bytes;
    uint64_t moved = 0, column = 0;
    while (moved < bytes) {
        if (put(text[column], out) == EOF)
            break;
        column = column + 1 == line ? 0 : column + 1;
        moved++;
        if (wb_passed(run, moved) != 0)
            break;
    }
    wb_streams_errors(run);
    return wb_moved(run, moved, moved, "write");
}

WB_INLINE int wb_chars(struct wb_run *run, wb_get_char *get, wb_put_char *put)
{
    switch (run->job->workload) {
    case WB_COPY:
        return wb_chars_through(run, get, put, NULL);
    case WB_TRANSLATE:
        return wb_chars_through(run, get, put, run->map);
    case WB_READ:
        return wb_chars_through(run, get, NULL, NULL);
    case WB_WRITE:
        return wb_chars_text(run, put, WB_TEXT_LINE);
    default: /* WB_LOG */
        return wb_chars_text(run, put, run->job->record_bytes);
    }
}

#endif
