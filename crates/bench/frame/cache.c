/* State of a file in the page cache: cachestat(2), or before Linux 6.5 mincore(2), which reports neither dirty
 * pages nor pages under writeback. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "frame.h"

enum { CACHESTAT = 451 }; /* the same on every architecture, and newer than many headers */

struct cachestat_range_of_kernel {
    uint64_t offset, length;
};
struct cachestat_of_kernel {
    uint64_t cached, dirty, writeback, evicted, recently_evicted;
};

/* Without write permission mincore(2) reports every page as resident, so its answer is not used then. */
static bool may_write(int fd, const struct stat *status)
{
    const int flags = fcntl(fd, F_GETFL);
    return (flags >= 0 && (flags & O_ACCMODE) != O_RDONLY) || status->st_uid == geteuid() || geteuid() == 0;
}

static int read_by_mincore(int fd, uint64_t bytes, uint64_t page, struct wb_cache_state *state)
{
    enum { WINDOW = 16384 };
    static unsigned char resident[WINDOW];
    for (uint64_t at = 0; at < bytes; at += WINDOW * page) {
        const uint64_t length = bytes - at < WINDOW * page ? bytes - at : WINDOW * page;
        void *window = mmap(NULL, length, PROT_READ, MAP_SHARED, fd, (off_t)at);
        if (window == MAP_FAILED)
            return -errno;
        const int error = mincore(window, length, resident) == 0 ? 0 : errno;
        munmap(window, length);
        if (error)
            return -error;
        for (uint64_t i = 0; i < (length + page - 1) / page; i++)
            state->cached += resident[i] & 1u;
    }
    return 0;
}

int wb_read_cache_state(int fd, uint64_t bytes, struct wb_cache_state *state)
{
    struct stat status;
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    *state = (struct wb_cache_state){.exact = 1};
    if (fstat(fd, &status) != 0)
        return -errno;
    if (bytes > (uint64_t)status.st_size)
        bytes = (uint64_t)status.st_size;
    if (bytes == 0)
        return 0; /* a length of 0 means the whole file to cachestat(2) */
    state->pages = (bytes + page - 1) / page;
    struct cachestat_range_of_kernel range = {.length = bytes};
    struct cachestat_of_kernel found = {0};
    if (syscall(CACHESTAT, fd, &range, &found, 0) == 0) {
        state->cached = found.cached;
        state->dirty = found.dirty;
        state->writeback = found.writeback;
        return 0;
    }
    const int error = errno; /* a container's seccomp filter may reject the call with EPERM */
    state->exact = 0;
    if ((error != ENOSYS && error != EPERM && error != EOPNOTSUPP) || !may_write(fd, &status))
        return -error;
    return read_by_mincore(fd, bytes, page, state);
}

void wb_read_output_cache(struct wb_run *run)
{
    struct wb_result *result = run->result;
    struct wb_cache_state state;
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    if (run->job->workload == WB_READ) {
        result->dirty_known = 1; /* without an output there are no dirty bytes */
        return;
    }
    const int fd = open(run->job->out_path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return;
    if (wb_read_cache_state(fd, run->job->bytes, &state) == 0 && state.exact) {
        result->dirty_known = 1;
        result->dirty_bytes = state.dirty * page;
        result->writeback_bytes = state.writeback * page;
    }
    close(fd);
}
