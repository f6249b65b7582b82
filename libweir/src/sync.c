/* sync.c: durability on demand. Threads that ask at the same time share one call of the kernel. */
#include "private.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

/* Every byte ever accepted, counted from the stream's opening: what a sync covers is a number of these. */
static uint64_t accepted(const weir_stream *s)
{
    return weir__hot(s)->stats.written_bytes + weir__pending(s) + weir__hot(s)->record_bytes;
}

static bool covered(const weir_stream *s, uint64_t target, enum weir_durability level)
{
    const struct weir__hot *hot = weir__hot(s);
    return level >= WEIR_WHOLE ? hot->synced_whole >= target && target > 0 : hot->synced >= target && target > 0;
}

/* The directory's entry is on the device when the directory is. */
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

/* Whose fault is it? A device may have dropped the pages, so never again is all well. That a file cannot be
 * synced at all, or that its directory could not be opened, leaves them where they were. */
static bool stays(int file_result, int directory_result)
{
    if (file_result < 0)
        return file_result != -EINVAL;
    return directory_result == -EIO || directory_result == -ENOSPC || directory_result == -EDQUOT;
}

static void remember(weir_stream *s, uint64_t covers, enum weir_durability level)
{
    struct weir__hot *hot = weir__hot(s);
    if (hot->synced < covers)
        hot->synced = covers;
    if (level >= WEIR_WHOLE && hot->synced_whole < covers)
        hot->synced_whole = covers;
}

/* The call itself, for all who wait; without the lock where others use the stream meanwhile. */
static int lead(weir_stream *s, enum weir_durability level)
{
    struct weir__hot *hot = weir__hot(s);
    struct weir__own *own = weir__own(s);
    bool release = own->locking && hot->lock.depth == 0;
    unsigned round = weir__round_begin(s, !release);
    int result = weir__flush_held(s);
    if (result < 0) {
        weir__round_end(s, round);
        return result;
    }
    uint64_t covers = accepted(s);
    hot->stats.syncs++;
    if (release)
        weir__unlock(&hot->lock);
    int file = own->sink->sync ? own->sink->sync(s, level) : -EINVAL;
    int directory = file == 0 && level >= WEIR_WHOLE && own->fd >= 0 ? sync_descriptor_directory(own->fd) : 0;
    if (release)
        weir__lock(&hot->lock, s);
    if (stays(file, directory))
        own->sync_error = file < 0 ? file : directory;
    else if (file == 0 && !own->sync_error)
        remember(s, covers, directory < 0 ? WEIR_DATA : level);
    weir__round_end(s, round);
    if (own->sync_error) /* perhaps of another's call meanwhile: the kernel says it once */
        return own->sync_error;
    return file < 0 ? file : directory;
}

/* Waits as long as calls run that others make. */
static void follow(weir_stream *s, uint64_t target, enum weir_durability level)
{
    unsigned round = WEIR__ROUNDS;
    while (weir__round_runs(s) && !covered(s, target, level) && !weir__own(s)->sync_error)
        round = weir__round_follow(s);
    if (round < WEIR__ROUNDS && (covered(s, target, level) || weir__own(s)->sync_error))
        weir__round_pass_on(s, round);
}

int weir__sync_held(weir_stream *s, enum weir_durability level)
{
    struct weir__hot *hot = weir__hot(s);
    struct weir__own *own = weir__own(s);
    if (own->sync_error)
        return own->sync_error;
    if (level == WEIR_PROCESS || (level == WEIR_KILL && own->spill))
        return hot->error;
    if (level <= WEIR_KERNEL)
        return weir__flush_held(s);
    uint64_t target = accepted(s);
    /* One whose caller holds the lock cannot wait for a leader that needs it: it makes a call of its own. */
    if (hot->lock.depth == 0)
        follow(s, target, level);
    if (own->sync_error)
        return own->sync_error;
    if (covered(s, target, level)) {
        hot->stats.shared_syncs++;
        return 0;
    }
    return lead(s, level);
}

/* The record was accepted; that it has not what it was promised is the next call's error. */
int weir__sync_record(weir_stream *s)
{
    enum weir_durability level = weir__own(s)->durability;
    int result = level >= WEIR_DATA ? weir__sync_held(s, level) : 0;
    if (result < 0 && result != -EAGAIN) {
        weir__hot(s)->error = result;
        weir__set_limits(s);
    }
    return result;
}

int weir_sync(weir_stream *s, enum weir_durability level)
{
    if (level > WEIR_WHOLE)
        return -EINVAL;
    weir__enter(s);
    int result = weir__own(s)->can_write ? weir__sync_held(s, level) : -EBADF;
    weir__leave(s);
    return result;
}
