/*
 * The two streams of the methods that use the C library, except their loops. `run->method_data` is a struct
 * wb_streams. The C library makes the system calls, so the kernel counts them.
 */
#ifndef WEIR_BENCH_STREAMS_H
#define WEIR_BENCH_STREAMS_H

#include <stdio.h>

#include "method.h"

struct wb_streams {
    FILE *in, *out;              /* NULL: not open */
    unsigned char *in_buffer, *out_buffer; /* memory for setvbuf(3); NULL: the library allocates it */
};

int wb_streams_prepare(struct wb_run *run);
int wb_streams_open(struct wb_run *run);
int wb_streams_flush(struct wb_run *run);
int wb_streams_close(struct wb_run *run);
void wb_streams_release(struct wb_run *run);
/* Records the error of a stream after a loop. errno must be that of the failed call. */
void wb_streams_errors(struct wb_run *run);

#define WB_STREAM_OPS                                                                                        \
    .prepare = wb_streams_prepare, .open = wb_streams_open, .flush = wb_streams_flush,                       \
    .close = wb_streams_close, .release = wb_streams_release

/* All policies except a flag on each write, because fwrite(3) has no flags. */
#define WB_STREAM_SYNCS (WB_ALL_SYNCS & ~WB_BIT(WB_SYNC_RWF_DSYNC))
#define WB_STREAM_SYNC_REASON "the C library makes the write calls and accepts no flags for them"

#endif
