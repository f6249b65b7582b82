/* getc_unlocked(3) and putc_unlocked(3): one byte without a lock, usually without a function call. */
#include "../frame/chars.h"

/* Wraps getc_unlocked, because a macro cannot be passed as a function. */
WB_INLINE int get(FILE *from)
{
    return getc_unlocked(from);
}

WB_INLINE int put(int byte, FILE *to)
{
    return putc_unlocked(byte, to);
}

static int transfer(struct wb_run *run)
{
    return wb_chars(run, get, put);
}

const struct wb_method wb_method_stdio_char_unlocked = {
    .name = "stdio-char-unlocked",
    .title = "getc_unlocked(3) and putc_unlocked(3), byte by byte",
    .workloads = WB_ALL_WORKLOADS,
    .syncs = WB_STREAM_SYNCS,
    .sync_reason = WB_STREAM_SYNC_REASON,
    .options = WB_HAS_BUFFER | WB_HAS_MODE,
    .ops = {WB_STREAM_OPS, .transfer = transfer},
};
