/* sync.c: durability on demand. Threads that ask at the same time share one call of the kernel. */
#include "private.h"

#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <sys/syscall.h>
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

/* Another thread is in fdatasync: its round may not have our bytes, the next one will. */
static void wait_for_round(weir_stream *s)
{
    struct weir__hot *hot = weir__hot(s);
    uint32_t round = atomic_load(&hot->sync_round);
    weir__unlock(&hot->lock);
    syscall(SYS_futex, &hot->sync_round, FUTEX_WAIT_PRIVATE, round, NULL, NULL, 0);
    weir__lock(&hot->lock, s);
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

int weir__sync_directory(const char *path)
{
    char directory[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) : 0;
    if (length >= sizeof directory)
        return -ENAMETOOLONG;
    memcpy(directory, path, length);
    strcpy(directory + length, slash ? (length ? "" : "/") : ".");
    int fd = (int)WEIR_CALL(weir__kernel.open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0));
    if (fd < 0)
        return fd;
    int result = (int)WEIR_CALL(weir__kernel.fsync(fd));
    weir__kernel.close(fd);
    return result;
}

/* The call itself, for all who wait; without the lock where others use the stream meanwhile. */
static int lead(weir_stream *s, enum weir_durability level)
{
    struct weir__hot *hot = weir__hot(s);
    struct weir__own *own = weir__own(s);
    int result = weir__flush_held(s);
    if (result < 0)
        return result;
    uint64_t covers = accepted(s);
    bool release = own->locking && hot->lock.depth == 0;
    hot->syncing = 1;
    hot->stats.syncs++;
    if (release)
        weir__unlock(&hot->lock);
    result = own->sink->sync ? own->sink->sync(s, level) : -EINVAL;
    if (result == 0 && level >= WEIR_WHOLE && own->fd >= 0)
        result = sync_descriptor_directory(own->fd);
    if (release)
        weir__lock(&hot->lock, s);
    hot->syncing = 0;
    atomic_fetch_add(&hot->sync_round, 1);
    if (release)
        syscall(SYS_futex, &hot->sync_round, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
    if (result < 0 && result != -EINVAL) { /* the pages may be gone: never again is all well */
        own->sync_error = result;
        return result;
    }
    if (result == 0) {
        hot->synced = covers;
        hot->synced_whole = level >= WEIR_WHOLE ? covers : hot->synced_whole;
    }
    return result;
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
    while (hot->syncing && !covered(s, target, level)) {
        if (hot->lock.depth) /* the leader needs the lock that this thread's caller holds */
            return weir__flush_held(s) < 0 ? hot->error : own->sink->sync(s, level);
        wait_for_round(s);
        if (own->sync_error)
            return own->sync_error;
    }
    if (covered(s, target, level)) {
        hot->stats.shared_syncs++;
        return 0;
    }
    return lead(s, level);
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
