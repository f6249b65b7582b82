/* sync.c: durability on demand. Threads that sync one stream at the same time share one call (group
 * commit). */
#include "private.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

/* Returns the number of bytes published since the opening. The bytes covered by a sync are such a number. An
 * incomplete record is not among them. */
static uint64_t published_bytes(const weir_stream *s)
{
    return weir__state(s)->stats.written_bytes + weir__pending(s);
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
    int result, fd = weir__open_repeated(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0)
        return fd;
    do
        result = (int)WEIR_CALL(weir__kernel.fsync(fd));
    while (result == -EINTR);
    weir__kernel.close(fd);
    return result;
}

/* Stores the path of the descriptor's file, or "" if it has none, such as a pipe. Without /proc the path is that of the
 * opening, if it still names the file. */
static int find_path(const struct weir__config *config, char *path, size_t bytes)
{
    char link[64];
    struct stat named, open_file;
    snprintf(link, sizeof link, "/proc/self/fd/%d", config->fd);
    ssize_t length = readlink(link, path, bytes - 1);
    int error = errno;
    path[length > 0 && path[0] == '/' ? length : 0] = 0;
    if (length >= 0)
        return 0;
    const char *known = config->temporary ? config->temporary : config->path;
    if (!known || strlen(known) >= bytes || stat(known, &named) != 0 || fstat(config->fd, &open_file) != 0 ||
        named.st_dev != open_file.st_dev || named.st_ino != open_file.st_ino)
        return -error;
    strcpy(path, known);
    return 0;
}

int weir__directory_is_known(const weir_stream *s)
{
    char path[PATH_MAX];
    return find_path(weir__config(s), path, sizeof path);
}

static int sync_descriptor_directory(const struct weir__config *config)
{
    char path[PATH_MAX];
    int result = find_path(config, path, sizeof path);
    return result < 0 || !*path ? result : weir__sync_directory(path);
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

/* Syncs the file, and its directory for WEIR_WHOLE, without the lock. Stores a permanent failure at once: the
 * kernel reports it to one call only, and a thread whose own call succeeds meanwhile must not miss it. */
static void sync_sink(weir_stream *s, enum weir_durability level, int *file, int *directory)
{
    struct weir__config *config = weir__config(s);
    int cancel = weir__cancel_off();
    *file = config->sink->sync ? config->sink->sync(s, level) : -EINVAL;
    *directory = 0;
    if (*file == 0 && level >= WEIR_WHOLE && config->fd >= 0)
        *directory = sync_descriptor_directory(config);
    if (is_sticky(*file, *directory))
        __atomic_store_n(&config->sync_error, *file < 0 ? *file : *directory, __ATOMIC_RELEASE);
    weir__cancel_restore(cancel);
}

/* Makes a call for the group. Releases the stream's lock meanwhile if other threads use the stream. */
static int sync_as_leader(weir_stream *s, enum weir_durability level)
{
    struct weir__state *state = weir__state(s);
    bool locked = weir__locking(s) && !atomic_load_explicit(&state->in_call, memory_order_relaxed);
    bool release = locked && state->lock.depth == 0;
    unsigned group = weir__group_begin(s, !release);
    int result = weir__flush_published(s), file, directory;
    if (result < 0) {
        weir__group_end(s, group);
        return result;
    }
    uint64_t covers = published_bytes(s);
    state->stats.syncs++;
    weir__group_call_begin(s);
    if (release)
        weir__unlock(&state->lock);
    sync_sink(s, level, &file, &directory);
    weir__group_call_end(s);
    if (release)
        weir__lock(&state->lock, s);
    else if (file == 0)
        weir__group_wait_for_calls(s); /* the kernel may have reported a failure to one of them */
    if (file == 0 && !is_sticky(file, directory) && !weir__sync_error(s))
        record_synced(s, covers, directory < 0 ? WEIR_DATA : level);
    weir__group_end(s, group);
    int error = weir__sync_error(s); /* may be from another thread's call */
    return error ? error : file < 0 ? file : directory;
}

/* Waits while other threads' calls run and have not covered `target`. */
static void wait_as_follower(weir_stream *s, uint64_t target, enum weir_durability level)
{
    unsigned group = WEIR__GROUPS;
    while (weir__group_running(s) && !covered(s, target, level) && !weir__sync_error(s))
        group = weir__group_follow(s);
    if (group < WEIR__GROUPS && (covered(s, target, level) || weir__sync_error(s)))
        weir__group_wake_leader(s, group);
}

/* Syncs all published bytes, by a call of its own or another thread's. */
static int sync_published(weir_stream *s, enum weir_durability level)
{
    struct weir__state *state = weir__state(s);
    uint64_t target = published_bytes(s);
    /* A caller that holds the lock recursively cannot release it for a leader: it makes its own call. */
    if (state->lock.depth == 0)
        wait_as_follower(s, target, level);
    if (weir__sync_error(s))
        return weir__sync_error(s);
    if (covered(s, target, level)) {
        state->stats.shared_syncs++;
        return 0;
    }
    return sync_as_leader(s, level);
}

int weir__sync_held(weir_stream *s, enum weir_durability level)
{
    struct weir__state *state = weir__state(s);
    if (weir__sync_error(s))
        return weir__sync_error(s);
    if (level == WEIR_PROCESS || (level == WEIR_KILL && weir__config(s)->spill))
        return state->error;
    if (level <= WEIR_KERNEL)
        return weir__flush_held(s);
    int result = weir__publish_begun(s);
    return result < 0 ? result : sync_published(s, level);
}

/* The record itself was accepted: the failure is returned by the next call. Does not write the next record,
 * which may be incomplete: its rest would follow in another write. */
int weir__sync_record(weir_stream *s)
{
    enum weir_durability level = weir__config(s)->durability;
    int result = level < WEIR_DATA ? 0 : weir__sync_error(s) ? weir__sync_error(s) : sync_published(s, level);
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
