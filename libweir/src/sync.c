/* sync.c: durability on demand. Threads that sync one stream at the same time share one call (group
 * commit). */
#include "private.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

/* Returns the number of bytes accepted since the opening. The bytes covered by a sync are such a number. */
static uint64_t accepted_bytes(const weir_stream *s)
{
    return weir__state(s)->stats.written_bytes + weir__pending(s) + weir__state(s)->record_bytes;
}

static bool covered(const weir_stream *s, uint64_t target, enum weir_durability level)
{
    const struct weir__state *state = weir__state(s);
    return level >= WEIR_WHOLE ? state->synced_whole >= target && target > 0
                               : state->synced >= target && target > 0;
}

/* Syncs the directory of `path`, which makes the file's entry durable. */
int weir__sync_directory(const char *path)
{
    char directory[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) : 0;
    if (length >= sizeof directory)
        return -ENAMETOOLONG;
    memcpy(directory, path, length);
    strcpy(directory + length, slash ? (length ? "" : "/") : ".");
    int fd, result;
    do
        fd = (int)WEIR_CALL(weir__kernel.open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0));
    while (fd == -EINTR);
    if (fd < 0)
        return fd;
    do
        result = (int)WEIR_CALL(weir__kernel.fsync(fd));
    while (result == -EINTR);
    weir__kernel.close(fd);
    return result;
}

static int sync_descriptor_directory(int fd)
{
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0)
        return -errno;
    path[length] = 0;
    return path[0] == '/' ? weir__sync_directory(path) : 0;
}

/* Returns whether the failure is permanent: the device may have dropped the pages. A file that cannot be
 * synced at all, or a directory that could not be opened, is a failure of this call only. */
static bool is_sticky(int file_result, int directory_result)
{
    if (file_result < 0)
        return file_result != -EINVAL;
    return directory_result == -EIO || directory_result == -ENOSPC || directory_result == -EDQUOT;
}

static void record_synced(weir_stream *s, uint64_t covers, enum weir_durability level)
{
    struct weir__state *state = weir__state(s);
    if (state->synced < covers)
        state->synced = covers;
    if (level >= WEIR_WHOLE && state->synced_whole < covers)
        state->synced_whole = covers;
}

/* Calls fdatasync(2) or fsync(2) for the group. Releases the stream's lock meanwhile if other threads use
 * the stream. */
static int sync_as_leader(weir_stream *s, enum weir_durability level)
{
    struct weir__state *state = weir__state(s);
    struct weir__config *config = weir__config(s);
    bool release = config->locking && state->lock.depth == 0;
    unsigned group = weir__group_begin(s, !release);
    int result = weir__flush_held(s);
    if (result < 0) {
        weir__group_end(s, group);
        return result;
    }
    uint64_t covers = accepted_bytes(s);
    state->stats.syncs++;
    if (release)
        weir__unlock(&state->lock);
    int file = config->sink->sync ? config->sink->sync(s, level) : -EINVAL;
    int directory =
        file == 0 && level >= WEIR_WHOLE && config->fd >= 0 ? sync_descriptor_directory(config->fd) : 0;
    if (release)
        weir__lock(&state->lock, s);
    if (is_sticky(file, directory))
        config->sync_error = file < 0 ? file : directory;
    else if (file == 0 && !config->sync_error)
        record_synced(s, covers, directory < 0 ? WEIR_DATA : level);
    weir__group_end(s, group);
    if (config->sync_error) /* may be from another thread's call: the kernel reports it once */
        return config->sync_error;
    return file < 0 ? file : directory;
}

/* Waits while other threads' calls run and have not covered `target`. */
static void wait_as_follower(weir_stream *s, uint64_t target, enum weir_durability level)
{
    unsigned group = WEIR__GROUPS;
    while (weir__group_running(s) && !covered(s, target, level) && !weir__config(s)->sync_error)
        group = weir__group_follow(s);
    if (group < WEIR__GROUPS && (covered(s, target, level) || weir__config(s)->sync_error))
        weir__group_wake_leader(s, group);
}

int weir__sync_held(weir_stream *s, enum weir_durability level)
{
    struct weir__state *state = weir__state(s);
    struct weir__config *config = weir__config(s);
    if (config->sync_error)
        return config->sync_error;
    if (level == WEIR_PROCESS || (level == WEIR_KILL && config->spill))
        return state->error;
    if (level <= WEIR_KERNEL)
        return weir__flush_held(s);
    uint64_t target = accepted_bytes(s);
    /* A caller that holds the lock recursively cannot release it for a leader: it makes its own call. */
    if (state->lock.depth == 0)
        wait_as_follower(s, target, level);
    if (config->sync_error)
        return config->sync_error;
    if (covered(s, target, level)) {
        state->stats.shared_syncs++;
        return 0;
    }
    return sync_as_leader(s, level);
}

/* The record itself was accepted: the failure is returned by the next call. */
int weir__sync_record(weir_stream *s)
{
    enum weir_durability level = weir__config(s)->durability;
    int result = level >= WEIR_DATA ? weir__sync_held(s, level) : 0;
    if (result < 0 && result != -EAGAIN) {
        weir__state(s)->error = result;
        weir__set_limits(s);
    }
    return result;
}

int weir_sync(weir_stream *s, enum weir_durability level)
{
    if (level > WEIR_WHOLE)
        return -EINVAL;
    weir__enter(s);
    int result = weir__config(s)->can_write ? weir__sync_held(s, level) : -EBADF;
    weir__leave(s);
    return result;
}
