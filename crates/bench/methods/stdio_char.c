/* fgetc(3) and fputc(3): one library call per byte, as in simple filters. */
#include "../frame/chars.h"

static int transfer(struct wb_run *run)
{
    return wb_chars(run, fgetc, fputc);
}

const struct wb_method wb_method_stdio_char = {
    .name = "stdio-char",
    .title = "fgetc(3) and fputc(3), byte by byte",
    .workloads = WB_ALL_WORKLOADS,
    .syncs = WB_STREAM_SYNCS,
    .sync_reason = WB_STREAM_SYNC_REASON,
    .options = WB_HAS_BUFFER | WB_HAS_MODE,
    .ops = {WB_STREAM_OPS, .transfer = transfer},
};
