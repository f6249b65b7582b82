/* sendfile(2): the kernel copies from the input's pages to the output, one call per record. */
#include <errno.h>
#include <sys/sendfile.h>

#include "../frame/loops.h"

WB_INLINE ssize_t move(struct wb_io *io, size_t bytes)
{
    const bool is_first = io->gets == 0; /* also after EINTR */
    for (;;) {
        const ssize_t moved = sendfile(io->out, io->in, NULL, bytes);
        io->gets++;
        if (moved >= 0)
            return moved;
        if (errno != EINTR)
            return wb_refused(io->run, is_first ? "sendfile" : NULL, "sendfile", io->run->job->out_path,
                              errno);
    }
}

static int transfer(struct wb_run *run)
{
    return wb_loop_move(run, move, "sendfile", NULL);
}

const struct wb_method wb_method_sendfile = {
    .name = "sendfile",
    .title = "sendfile(2), one call per record",
    .workloads = WB_BIT(WB_COPY),
    .workload_reason = WB_MOVE_REASON,
    .syncs = WB_MOVE_SYNCS,
    .sync_reason = WB_MOVE_SYNC_REASON,
    .options = WB_HAS_RECORD,
    .ops = {.transfer = transfer},
};
