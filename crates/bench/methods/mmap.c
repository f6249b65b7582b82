/*
 * Both files mapped completely; a record is one memcpy(3) between the mappings. On Linux fsync(2) and
 * fdatasync(2) also write the bytes stored through a mapping (msync(2) with MS_SYNC is an fdatasync of a
 * range), so the frame's sync calls work unchanged.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "../frame/loops.h"

struct maps {
    unsigned char *in, *out; /* MAP_FAILED: not mapped */
};

static int prepare(struct wb_run *run)
{
    struct maps *maps = malloc(sizeof *maps);
    if (!maps)
        return wb_fail(run, "malloc", NULL, ENOMEM);
    *maps = (struct maps){MAP_FAILED, MAP_FAILED};
    run->method_data = maps;
    run->open_flags_out |= O_RDWR; /* a shared mapping that is stored to must also be readable */
    return 0;
}

static void release(struct wb_run *run)
{
    free(run->method_data);
}

static int map_one(struct wb_run *run, unsigned char **map, int fd, int protection, const char *path)
{
    if (fd < 0)
        return 0;
    void *mapped = mmap(NULL, (size_t)run->job->bytes, protection, MAP_SHARED, fd, 0);
    wb_count(run, "mmap", 1);
    if (mapped == MAP_FAILED && errno == ENODEV)
        return wb_cannot(run, "the file system has no shared mappings");
    if (mapped == MAP_FAILED)
        return wb_fail(run, "mmap", path, errno);
    *map = mapped;
    return 0;
}

static int open_maps(struct wb_run *run)
{
    struct maps *maps = run->method_data;
    const struct wb_job *job = run->job;
    if (wb_open_files(run, 0, 0) != 0)
        return -1;
    if (job->bytes == 0)
        return 0; /* a mapping of 0 bytes is invalid */
    if (run->out >= 0) {
        wb_count(run, "ftruncate", 1);
        if (ftruncate(run->out, (off_t)job->bytes) != 0)
            return wb_fail(run, "ftruncate", job->out_path, errno);
    }
    if (map_one(run, &maps->in, run->in, PROT_READ, job->in_path) != 0)
        return -1;
    return map_one(run, &maps->out, run->out, PROT_READ | PROT_WRITE, job->out_path);
}

static int unmap_one(struct wb_run *run, unsigned char **map, const char *path)
{
    if (*map == MAP_FAILED)
        return 0;
    const int rc = munmap(*map, (size_t)run->job->bytes);
    *map = MAP_FAILED;
    wb_count(run, "munmap", 1);
    return rc == 0 ? 0 : wb_fail(run, "munmap", path, errno);
}

static int close_maps(struct wb_run *run)
{
    struct maps *maps = run->method_data;
    (void)unmap_one(run, &maps->out, run->job->out_path); /* a failure is recorded in the result */
    (void)unmap_one(run, &maps->in, run->job->in_path);
    return wb_close_files(run);
}

WB_INLINE void copy_mapped(unsigned char *to, const unsigned char *from, size_t bytes,
                           const unsigned char *map)
{
    if (!map)
        memcpy(to, from, bytes);
    for (size_t i = 0; map && i < bytes; i++)
        to[i] = map[from[i]];
}

/* Copies one record per pass. The masks select the bits of the offset that are added to an address: all for a
 * mapping, none for the record that WB_READ reads into. */
WB_INLINE int loop(struct wb_run *run, unsigned char *to, uint64_t to_mask, const unsigned char *from,
                   uint64_t from_mask, const unsigned char *map)
{
    const uint64_t bytes = run->job->bytes, most = run->pass_bytes;
    uint64_t moved = 0, passes = 0;
    while (moved < bytes) {
        const size_t wanted = wb_pass_length(bytes - moved, most);
        copy_mapped(to + (moved & to_mask), from + (moved & from_mask), wanted, map);
        moved += wanted;
        passes++;
        if (wb_passed(run, moved) != 0)
            break;
    }
    return wb_moved(run, moved, passes, "mmap");
}

static int run_loop(struct wb_run *run)
{
    const struct maps *maps = run->method_data;
    switch (run->job->workload) {
    case WB_COPY:
        return loop(run, maps->out, UINT64_MAX, maps->in, UINT64_MAX, NULL);
    case WB_TRANSLATE:
        return loop(run, maps->out, UINT64_MAX, maps->in, UINT64_MAX, run->map);
    case WB_READ:
        return loop(run, run->record, 0, maps->in, UINT64_MAX, NULL);
    default: /* WB_WRITE */
        return loop(run, maps->out, UINT64_MAX, run->record, run->text_mask, NULL);
    }
}

/* Target of SIGBUS: a store into a full file system, or a load past the end of an input that was truncated. */
static sigjmp_buf bus_error;

static void on_bus_error(int signal)
{
    (void)signal;
    siglongjmp(bus_error, 1);
}

static int bus_failure(struct wb_run *run)
{
    struct statvfs space;
    const char *path = run->job->out_path ? run->job->out_path : run->job->in_path;
    const bool full = run->out >= 0 && fstatvfs(run->out, &space) == 0 && space.f_bavail == 0;
    return wb_fail(run, "mmap", path, full ? ENOSPC : EIO);
}

static int transfer(struct wb_run *run)
{
    struct sigaction action = {.sa_handler = on_bus_error}, before;
    sigaction(SIGBUS, &action, &before);
    const int rc = sigsetjmp(bus_error, 1) == 0 ? run_loop(run) : bus_failure(run);
    sigaction(SIGBUS, &before, NULL);
    return rc;
}

const struct wb_method wb_method_mmap = {
    .name = "mmap",
    .title = "both files mapped, a record is one memcpy(3)",
    .workloads = WB_ALL_WORKLOADS & ~WB_BIT(WB_LOG),
    .workload_reason = "a mapping cannot make a file longer, so it cannot append",
    .syncs = WB_BIT(WB_SYNC_NONE) | WB_BIT(WB_SYNC_END) | WB_BIT(WB_SYNC_FSYNC) |
             WB_BIT(WB_SYNC_FDATASYNC) | WB_BIT(WB_SYNC_RANGE),
    .sync_reason = "O_SYNC, O_DSYNC and RWF_DSYNC apply to write calls, not to stores into a mapping",
    .options = WB_HAS_RECORD,
    .ops = {.prepare = prepare, .open = open_maps, .transfer = transfer, .close = close_maps,
            .release = release},
};
