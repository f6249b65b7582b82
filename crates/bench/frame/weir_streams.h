/*
 * The two streams of the methods that use libweir, except their loops. `run->method_data` is a struct
 * wb_weir_streams. The library makes the system calls, so the kernel counts them.
 */
#ifndef WEIR_BENCH_WEIR_STREAMS_H
#define WEIR_BENCH_WEIR_STREAMS_H

#include <weir.h>

#include "method.h"

struct wb_weir_streams {
    weir_stream *in, *out; /* NULL: not open */
};

int wb_weir_prepare(struct wb_run *run);
int wb_weir_open(struct wb_run *run);
int wb_weir_flush(struct wb_run *run);
int wb_weir_close(struct wb_run *run);
void wb_weir_release(struct wb_run *run);

#define WB_WEIR_OPS                                                                                          \
    .prepare = wb_weir_prepare, .open = wb_weir_open, .flush = wb_weir_flush, .close = wb_weir_close,        \
    .release = wb_weir_release

#define WB_WEIR_SYNCS (WB_ALL_SYNCS & ~WB_BIT(WB_SYNC_RWF_DSYNC))
#define WB_WEIR_SYNC_REASON "the library makes the write calls and accepts no flags for them"

#endif
