/*
 * The two streams of the methods that go through the C library: everything but their loops. `run->own` is
 * a struct wb_streams. The C library makes the system calls, so the kernel counts them.
 */
#ifndef WEIR_BENCH_STREAMS_H
#define WEIR_BENCH_STREAMS_H

#include <stdio.h>

#include "method.h"

struct wb_streams {
    FILE *in, *out;              /* NULL where there is none */
    unsigned char *in_buffer, *out_buffer; /* the caller's memory for setvbuf(3), NULL: the library's own */
};

int wb_streams_prepare(struct wb_run *run);
int wb_streams_open(struct wb_run *run);
int wb_streams_flush(struct wb_run *run);
int wb_streams_close(struct wb_run *run);
void wb_streams_release(struct wb_run *run);
/* After a loop that may have stopped at an error of a stream, with errno still as the call left it. */
void wb_streams_errors(struct wb_run *run);

#define WB_STREAM_OPS                                                                                        \
    .prepare = wb_streams_prepare, .open = wb_streams_open, .flush = wb_streams_flush,                       \
    .close = wb_streams_close, .release = wb_streams_release

/* Everything but a flag on each write, which fwrite(3) has no room for. */
#define WB_STREAM_SYNCS (WB_ALL_SYNCS & ~WB_BIT(WB_SYNC_RWF_DSYNC))
#define WB_STREAM_SYNC_REASON "the C library makes the write calls, and takes no flags for them"

#endif
