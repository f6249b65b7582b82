/* Opens and closes the input and the output. An existing file is never written to. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "frame.h"

/* Sets to_end. Runs before the timed span, which then contains only the loop's calls. */
void wb_stat_input(struct wb_run *run)
{
    struct stat status;
    const uint32_t workload = run->job->workload;
    if (workload == WB_WRITE || workload == WB_LOG)
        return;
    /* open(2) reports a missing or unreadable input. */
    run->to_end = stat(run->job->in_path, &status) == 0 && (uint64_t)status.st_size == run->job->bytes;
}

/* Calls openat(2) until no signal interrupts it, as may happen on a slow network file system. */
static int open_retrying(struct wb_run *run, const char *path, int flags)
{
    int fd;
    uint64_t calls = 0;
    do {
        fd = openat(AT_FDCWD, path, flags | O_CLOEXEC, 0600);
        calls++;
    } while (fd < 0 && errno == EINTR);
    wb_count(run, "openat", calls);
    if (fd < 0 && errno == EINVAL && (flags & O_DIRECT))
        return wb_cannot(run, "the file system has no O_DIRECT");
    return fd < 0 ? wb_fail(run, "openat", path, errno) : fd;
}

static int sync_flags(uint32_t sync)
{
    return sync == WB_SYNC_O_DSYNC ? O_DSYNC : sync == WB_SYNC_O_SYNC ? O_SYNC : 0;
}

static int open_input(struct wb_run *run, int flags)
{
    run->in = open_retrying(run, run->job->in_path, O_RDONLY | flags);
    if (run->in < 0)
        return -1;
    if (run->job->advice == WB_ADVICE_NONE)
        return 0;
    wb_count(run, "fadvise64", 1);
    const int error = posix_fadvise(run->in, 0, 0, run->job->advice);
    return error ? wb_fail(run, "fadvise64", run->job->in_path, error) : 0;
}

int wb_open_files(struct wb_run *run, int flags_in, int flags_out)
{
    const uint32_t workload = run->job->workload;
    if (workload != WB_WRITE && workload != WB_LOG && open_input(run, run->open_flags_in | flags_in) != 0)
        return -1;
    if (workload == WB_READ)
        return 0;
    int flags = run->open_flags_out | flags_out | sync_flags(run->job->sync);
    if (!(flags & O_RDWR))
        flags |= O_WRONLY;
    run->out = open_retrying(run, run->job->out_path, flags | O_CREAT | O_EXCL | O_NOFOLLOW);
    return run->out < 0 ? -1 : 0;
}

/* Closes *fd. close(2) is never repeated: Linux has freed the descriptor even when the call fails. */
static int close_one(struct wb_run *run, int *fd, const char *path)
{
    if (*fd < 0)
        return 0;
    const int rc = close(*fd);
    *fd = -1;
    wb_count(run, "close", 1);
    return rc == 0 || errno == EINTR ? 0 : wb_fail(run, "close", path, errno);
}

int wb_close_files(struct wb_run *run)
{
    const int in = close_one(run, &run->in, run->job->in_path);
    const int out = close_one(run, &run->out, run->job->out_path);
    return in != 0 || out != 0 ? -1 : 0;
}
