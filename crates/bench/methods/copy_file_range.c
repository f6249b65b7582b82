/* copy_file_range(2): the file system copies, or shares the blocks of both files (reflink). */
#include <errno.h>
#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "../frame/loops.h"

WB_INLINE ssize_t move(struct wb_io *io, size_t bytes)
{
    const bool is_first = io->gets == 0; /* also after EINTR */
    for (;;) {
        const ssize_t moved = copy_file_range(io->in, NULL, io->out, NULL, bytes, 0);
        io->gets++;
        if (moved >= 0)
            return moved;
        if (errno != EINTR)
            return wb_refused(io->run, is_first ? "copy_file_range" : NULL, "copy_file_range",
                              io->run->job->out_path, errno);
    }
}

static int transfer(struct wb_run *run)
{
    return wb_loop_move(run, move, "copy_file_range", NULL);
}

/* Number of extents that one FIEMAP call returns. */
enum { EXTENTS = 64 };
union extents {
    struct fiemap map;
    unsigned char memory[sizeof(struct fiemap) + EXTENTS * sizeof(struct fiemap_extent)];
};

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a < b ? b : a;
}

/* Returns how many of the first `bytes` bytes are in shared blocks, as far as the file system reports it. */
static uint64_t shared_bytes(int fd, uint64_t bytes)
{
    union extents answer;
    struct fiemap *map = &answer.map;
    uint64_t shared = 0, at = 0;
    while (at < bytes) {
        memset(&answer, 0, sizeof answer);
        map->fm_start = at;
        map->fm_length = bytes - at;
        map->fm_extent_count = EXTENTS;
        if (ioctl(fd, FS_IOC_FIEMAP, map) != 0 || map->fm_mapped_extents == 0)
            break;
        for (uint32_t i = 0; i < map->fm_mapped_extents; i++) {
            const struct fiemap_extent *extent = &map->fm_extents[i];
            const uint64_t start = larger(extent->fe_logical, at);
            const uint64_t end = smaller(extent->fe_logical + extent->fe_length, bytes);
            if (end <= start)
                continue;
            at = end;
            if (extent->fe_flags & FIEMAP_EXTENT_SHARED)
                shared += end - start;
        }
        if (at == map->fm_start)
            break; /* no extent is behind the last one: a further call would return the same */
        if (map->fm_extents[map->fm_mapped_extents - 1].fe_flags & FIEMAP_EXTENT_LAST)
            break;
    }
    return shared;
}

static int inspect(struct wb_run *run)
{
    const uint64_t bytes = run->job->bytes;
    const int fd = open(run->job->out_path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return 0;
    const uint64_t shared = shared_bytes(fd, bytes);
    close(fd);
    if (shared > 0 && shared >= bytes)
        wb_remark(run, "the file system shared the blocks (reflink): no byte was copied");
    else if (shared > 0)
        wb_remark(run, "the file system shared %.0f %% of the blocks (reflink) and copied the rest",
                  100.0 * (double)shared / (double)bytes);
    return 0;
}

const struct wb_method wb_method_copy_file_range = {
    .name = "copy_file_range",
    .title = "copy_file_range(2), one call per record",
    .workloads = WB_BIT(WB_COPY),
    .workload_reason = WB_MOVE_REASON,
    .syncs = WB_MOVE_SYNCS,
    .sync_reason = WB_MOVE_SYNC_REASON,
    .options = WB_HAS_RECORD,
    .ops = {.transfer = transfer, .inspect = inspect},
};
