/* spill.c: the buffer of a WEIR_KILL stream in its spill file. spill.h defines the file and the order of
 * stores. */
#include "spill.h"

#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "format.h"

/* ---- creating and removing the file ---- */

static enum weir__spill_kind kind_of(const struct weir__config *config)
{
    if (!config->seekable)
        return WEIR_SPILL_SEQUENTIAL;
    return config->regular && (config->append || config->lock_file) ? WEIR_SPILL_APPEND
                                                                    : WEIR_SPILL_POSITIONED;
}

/* Finds the absolute path of the descriptor's file; "" if it has none, such as "pipe:[1234]". */
static void find_path(int fd, char *path)
{
    char link[64] = "/proc/self/fd/";
    link[14 + weir__format_u64(link + 14, (uint64_t)fd)] = 0;
    ssize_t length = readlink(link, path, WEIR_SPILL_PATH - 1);
    path[length > 0 && path[0] == '/' ? length : 0] = 0;
}

/* The fields of struct statx up to stx_btime; not every C library declares it. */
struct statx_btime {
    uint32_t mask;
    char fields_before[76];
    int64_t seconds;
    uint32_t ns;
    char fields_after[256 - 92];
};
enum { STATX_BTIME_MASK = 0x800 };
_Static_assert(offsetof(struct statx_btime, seconds) == 80 && sizeof(struct statx_btime) == 256,
               "as the kernel has it");

static uint64_t btime_of(int fd)
{
    struct statx_btime statx_btime = {0};
    if (syscall(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_BTIME_MASK, &statx_btime) != 0 ||
        !(statx_btime.mask & STATX_BTIME_MASK))
        return 0;
    return (uint64_t)statx_btime.seconds * 1000000000 + statx_btime.ns;
}

int weir__spill_identify(int fd, struct weir__spill_sink *sink)
{
    struct stat status;
    int result = (int)WEIR_CALL(weir__kernel.fstat(fd, &status));
    if (result < 0)
        return result;
    sink->dev = status.st_dev;
    sink->ino = status.st_ino;
    sink->type = status.st_mode & S_IFMT;
    sink->btime = btime_of(fd);
    return 0;
}

static int describe(const weir_stream *s, struct weir__spill_sink *sink)
{
    const struct weir__config *config = weir__config(s);
    memset(sink, 0, sizeof *sink); /* the checksum covers the padding and the bytes behind the path */
    int result = weir__spill_identify(config->fd, sink);
    if (result < 0)
        return result;
    sink->kind = kind_of(config);
    sink->lock = config->lock_file;
    sink->separator = config->separator;
    find_path(config->fd, sink->path);
    return 0;
}

static void set_pointers(weir_stream *s)
{
    struct weir__config *config = weir__config(s);
    struct weir__spill *spill = config->spill;
    config->shared_head = spill->file ? &spill->file->head : NULL;
    config->buffer = spill->file ? (char *)spill->file + spill->file->buffer_at : NULL;
    config->capacity = spill->file ? spill->capacity : 0; /* without a file there is no room */
    weir__buffers_set_pointers(s);
}

/* Closes the descriptor and thereby releases the lock. Does nothing if the program closed it and another
 * file has the number now. */
static void close_file(struct weir__spill *spill)
{
    struct stat status;
    if (spill->fd >= 0 && weir__kernel.fstat(spill->fd, &status) == 0 && status.st_dev == spill->dev &&
        status.st_ino == spill->ino)
        weir__kernel.close(spill->fd);
    spill->fd = -1;
}

/* Unmaps and closes the file. `keep`: leaves its name, for weir_recover. */
static void release_file(weir_stream *s, bool keep)
{
    struct weir__spill *spill = weir__config(s)->spill;
    struct weir__spill_file *file = spill->file;
    if (!file)
        return;
    if (!keep && spill->fd >= 0)
        weir__spill_unlink(spill->path, spill->dev, spill->ino);
    WEIR_PUBLISH(&file->released, 1);
    spill->file = NULL;
    set_pointers(s);
    weir__kernel.munmap(file, spill->mapped);
    close_file(spill);
    weir__holder_wait(spill);
}

static int create_file(weir_stream *s)
{
    struct weir__spill *spill = weir__config(s)->spill;
    struct weir__spill_sink sink;
    int result = describe(s, &sink);
    if (result == 0)
        result = weir__spill_create(spill, spill->capacity, &sink);
    if (result < 0)
        return result;
    set_pointers(s);
    if (spill->wants_holder && !spill->anonymous)
        result = weir__holder_start(s);
    if (result < 0)
        release_file(s, false);
    return result;
}

static int set_requested_path(struct weir__spill *spill, const char *requested)
{
    if (strlen(requested) >= sizeof spill->requested_path)
        return -ENAMETOOLONG;
    strcpy(spill->requested_path, requested);
    return *requested ? weir__spill_make_absolute(spill->requested_path, sizeof spill->requested_path) : 0;
}

int weir__spill_init(weir_stream *s, const struct weir_options *options)
{
    struct weir__config *config = weir__config(s);
    struct weir__spill *spill =
        weir__kernel.mmap(NULL, sizeof *spill, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (spill == MAP_FAILED)
        return -errno;
    spill->fd = -1;
    spill->first_pid = config->pid;
    spill->capacity = config->capacity;
    spill->wants_holder = options->flags & WEIR_HOLDER;
    config->spill = spill;
    int result = set_requested_path(spill, options->spill ? options->spill : "");
    if (result == 0)
        result = create_file(s);
    if (result < 0) {
        config->spill = NULL;
        weir__kernel.munmap(spill, sizeof *spill);
    }
    return result;
}

/* Drops the parent's file in a forked child, which has neither the mapping nor the lock, only a copy of the
 * descriptor. Its first append creates its own file. */
int weir__spill_reinit(weir_stream *s)
{
    struct weir__spill *spill = weir__config(s)->spill;
    close_file(spill);
    spill->file = NULL;
    spill->holder = 0;
    set_pointers(s);
    return 0;
}

void weir__spill_free(weir_stream *s, bool keep)
{
    struct weir__config *config = weir__config(s);
    struct weir__spill *spill = config->spill;
    release_file(s, keep);
    config->spill = NULL;
    weir__kernel.munmap(spill, sizeof *spill);
}

/* Exit handlers that run later may still append. They get anonymous memory: a file would look as if left by
 * a kill. */
void weir__spill_exit(weir_stream *s)
{
    weir__spill_exec(s);
    weir__config(s)->spill->anonymous = !weir__config(s)->spill->file;
}

/* If the exec fails, the next append creates a new file. */
void weir__spill_exec(weir_stream *s)
{
    if (weir__pending(s) == 0 && weir__state(s)->record_bytes == 0)
        release_file(s, false);
}

/* ---- growing ---- */

/* Extends the file and the mapping. The buffer keeps its place in the file, so a kill leaves no
 * intermediate state. */
static int extend(struct weir__spill *spill, size_t capacity)
{
    size_t bytes = spill->file->buffer_at + ((capacity + weir__page - 1) & ~(weir__page - 1));
    if (bytes <= spill->mapped)
        return 0;
    int result = spill->fd >= 0 ? weir__spill_allocate_blocks(spill->fd, bytes) : 0;
    if (result < 0)
        return result;
    void *memory = mremap(spill->file, spill->mapped, bytes, MREMAP_MAYMOVE);
    if (memory == MAP_FAILED)
        return -errno;
    spill->file = memory;
    spill->mapped = bytes;
    return 0;
}

int weir__spill_grow(weir_stream *s, size_t capacity)
{
    struct weir__spill *spill = weir__config(s)->spill;
    int result = spill->file ? extend(spill, capacity) : 0;
    if (result < 0)
        return result;
    spill->capacity = capacity;
    set_pointers(s);
    weir__set_limits(s);
    return 0;
}

/* ---- stores before and after writes ---- */

static void store_position(weir_stream *s, struct weir__spill_file *file)
{
    int64_t position = WEIR_CALL(weir__kernel.lseek(weir__config(s)->fd, 0, SEEK_CUR));
    uint64_t origin = (uint64_t)position - weir__drained(s);
    if (position >= 0 && file->origin != origin)
        WEIR_PUBLISH(&file->origin, origin);
}

static void store_file_end(weir_stream *s, struct weir__spill_file *file)
{
    struct stat status;
    bool known = weir__kernel.fstat(weir__config(s)->fd, &status) == 0 && S_ISREG(status.st_mode);
    WEIR_PUBLISH(&file->inflight.end, known ? (uint64_t)status.st_size : WEIR_SPILL_NONE);
}

int weir__spill_append_begin(weir_stream *s)
{
    struct weir__config *config = weir__config(s);
    if (!config->spill->file) {
        int cancel = weir__cancel_off();
        int result = create_file(s);
        weir__cancel_restore(cancel);
        if (result < 0)
            return result;
    }
    struct weir__spill_file *file = config->spill->file;
    if (file->mode != (uint64_t)config->mode)
        WEIR_PUBLISH(&file->mode, (uint64_t)config->mode);
    if (weir__pending(s) == 0 && file->sink.kind == WEIR_SPILL_POSITIONED) {
        store_position(s, file);
        store_file_end(s, file);
    }
    return 0;
}

void weir__spill_write_begin(weir_stream *s, uint64_t bytes, uint64_t total)
{
    struct weir__spill_file *file = weir__config(s)->spill->file;
    if (!file)
        return; /* the buffer is empty */
    WEIR_PUBLISH(&file->inflight.from, WEIR_SPILL_NONE);
    if (file->sink.kind == WEIR_SPILL_POSITIONED)
        store_position(s, file);
    if (file->sink.kind != WEIR_SPILL_SEQUENTIAL)
        store_file_end(s, file);
    if (bytes == 0)
        return;
    WEIR_PUBLISH(&file->inflight.bytes, bytes);
    WEIR_PUBLISH(&file->inflight.total, total);
    WEIR_PUBLISH(&file->inflight.from, weir__drained(s));
}

void weir__spill_write_end(weir_stream *s, uint64_t others)
{
    struct weir__spill_file *file = weir__config(s)->spill->file;
    if (!file)
        return;
    if (others)
        WEIR_PUBLISH(&file->origin, file->origin + others);
    WEIR_PUBLISH(&file->inflight.from, WEIR_SPILL_NONE);
}

void weir__spill_take_back(weir_stream *s, uint64_t drained, uint64_t bytes, uint64_t total, uint64_t end)
{
    struct weir__spill_file *file = weir__config(s)->spill->file;
    WEIR_PUBLISH(&file->inflight.end, end - total);
    WEIR_PUBLISH(&file->inflight.bytes, bytes);
    WEIR_PUBLISH(&file->inflight.total, total);
    WEIR_PUBLISH(&file->inflight.from, drained); /* not valid before `drained` has this value */
    WEIR_PUBLISH(&file->head.drained, drained);
}

void weir__spill_reset(weir_stream *s, uint64_t bytes)
{
    struct weir__spill_file *file = weir__config(s)->spill->file;
    WEIR_PUBLISH(&file->origin, file->origin + bytes);
}
