/* replay.c: writes the pending bytes in a dead owner's file to its sink. Each step is stored in the file,
 * so that a recovery that was killed or failed can be continued. */
#include "spill.h"

#include <limits.h>
#include <sys/mman.h>
#include <unistd.h>

#include "format.h"

enum { CHUNK = 4096 };

/* ---- reading the file by pread(2): a mapping would raise SIGBUS if the file is truncated ---- */

static int64_t read_at(int fd, void *to, size_t bytes, uint64_t at)
{
    int64_t result;
    do
        result = WEIR_CALL(weir__kernel.pread(fd, to, bytes, (off_t)at));
    while (result == -EINTR);
    return result;
}

static int write_at(int fd, const void *from, size_t bytes, uint64_t at)
{
    int64_t result;
    do
        result = WEIR_CALL(weir__kernel.pwrite(fd, from, bytes, (off_t)at));
    while (result == -EINTR);
    return result == (int64_t)bytes ? 0 : result < 0 ? (int)result : -EIO;
}

static uint64_t pending_bytes(const struct weir__spill_image *image)
{
    const struct weir_head *head = &image->file.head;
    return head->drained < head->written ? head->written - head->drained : 0;
}

static uint64_t position(const struct weir__spill_image *image)
{
    return image->file.origin + image->file.head.drained;
}

static bool has_inflight(const struct weir__spill_image *image)
{
    return pending_bytes(image) && image->file.inflight.from == image->file.head.drained;
}

static bool is_layout_right(const struct weir__spill_file *file)
{
    return file->head.magic == WEIR_HEAD_MAGIC && file->head.layout == WEIR_LAYOUT && file->head.base == 0 &&
           file->magic == WEIR_SPILL_MAGIC && file->layout == WEIR_SPILL_LAYOUT &&
           file->checksum == weir__spill_checksum(&file->sink);
}

static bool is_sink_right(const struct weir__spill_sink *sink)
{
    return sink->kind <= WEIR_SPILL_SEQUENTIAL && sink->lock <= 1 && sink->separator >= -1 &&
           sink->separator <= 255 && memchr(sink->path, 0, sizeof sink->path) &&
           (sink->path[0] == 0 || sink->path[0] == '/');
}

/* Requires that no offset and no sum of offsets exceeds the file. */
static bool are_offsets_right(const struct weir__spill_image *image)
{
    const struct weir__spill_file *file = &image->file;
    const struct weir_head *head = &file->head;
    if (file->buffer_at < sizeof *file || file->buffer_at % CHUNK || file->buffer_at >= image->size)
        return false;
    uint64_t room = image->size - file->buffer_at;
    if (head->buffer_bytes == 0 || head->buffer_bytes > room || head->written > room || head->drained > room)
        return false;
    if (file->mode < WEIR_NONE || file->mode > WEIR_RECORD)
        return false;
    if (pending_bytes(image) && file->sink.kind == WEIR_SPILL_POSITIONED &&
        position(image) > (uint64_t)INT64_MAX - pending_bytes(image))
        return false;
    const struct weir__inflight *inflight = &file->inflight;
    if (inflight->end != WEIR_SPILL_NONE && inflight->end > INT64_MAX)
        return false;
    return !has_inflight(image) || (inflight->bytes > 0 && inflight->bytes <= pending_bytes(image) &&
                                    inflight->total >= inflight->bytes && inflight->total <= INT64_MAX);
}

int weir__spill_load(struct weir__spill_image *image, int fd)
{
    struct stat status;
    image->fd = fd;
    int result = (int)WEIR_CALL(weir__kernel.fstat(fd, &status));
    if (result < 0)
        return result;
    image->size = (uint64_t)status.st_size;
    int64_t got = read_at(fd, &image->file, sizeof image->file, 0);
    if (got < 0)
        return (int)got;
    if (got < (int64_t)sizeof image->file || !is_layout_right(&image->file))
        return -EBADMSG;
    return is_sink_right(&image->file.sink) && are_offsets_right(image) ? 0 : -EBADMSG;
}

void weir__spill_describe(const struct weir__spill_image *image, struct weir_recovered *found)
{
    found->bytes = pending_bytes(image);
    found->pid = image->file.head.pid;
    found->exact = 1;
    found->repeated = 0;
    _Static_assert(sizeof found->path == sizeof image->file.sink.path, "paths of the same size");
    memcpy(found->path, image->file.sink.path, sizeof found->path);
}

/* ---- storing the progress ---- */

#define STORE_FIELD(image, field)                                          \
    write_at((image)->fd, &(image)->file.field, sizeof(image)->file.field, \
             offsetof(struct weir__spill_file, field))

/* Stores the structure in one write: a kill cannot divide a copy within one page. */
static int store_inflight(struct weir__spill_image *image, uint64_t bytes, uint64_t end)
{
    uint64_t from = bytes ? image->file.head.drained : WEIR_SPILL_NONE;
    image->file.inflight = (struct weir__inflight){from, bytes, bytes, end};
    return STORE_FIELD(image, inflight);
}

static int store_drained(struct weir__spill_image *image, uint64_t bytes)
{
    image->file.head.drained += bytes;
    return STORE_FIELD(image, head.drained);
}

static int store_origin(struct weir__spill_image *image, uint64_t next)
{
    image->file.origin = next - image->file.head.drained;
    return STORE_FIELD(image, origin);
}

/* ---- finding which bytes the sink already has ---- */

bool weir__is_same_sink(const struct weir__spill_image *image, int fd)
{
    struct weir__spill_sink now;
    const struct weir__spill_sink *recorded = &image->file.sink;
    if (weir__spill_identify(fd, &now) < 0 || now.dev != recorded->dev || now.ino != recorded->ino ||
        now.type != recorded->type)
        return false;
    return now.btime == recorded->btime || !now.btime || !recorded->btime;
}

static int64_t end_of(const struct weir__target *target)
{
    struct stat status;
    int64_t result = WEIR_CALL(weir__kernel.fstat(target->fd, &status));
    return result < 0 ? result : (int64_t)status.st_size;
}

/* Compares `bytes` bytes of the target at `at` with the buffer at `offset`. Returns 1 if equal, 0 if
 * different, -1 if the target cannot be read. */
static int compare_target(const struct weir__spill_image *image, const struct weir__target *target,
                          uint64_t at, uint64_t offset, uint64_t bytes)
{
    char buffer_bytes[CHUNK], target_bytes[CHUNK];
    while (bytes) {
        size_t part = bytes < CHUNK ? (size_t)bytes : CHUNK;
        if (target->read_fd < 0 || read_at(target->read_fd, target_bytes, part, at) != (int64_t)part ||
            read_at(image->fd, buffer_bytes, part, image->file.buffer_at + offset) != (int64_t)part)
            return -1;
        if (memcmp(buffer_bytes, target_bytes, part) != 0)
            return 0;
        at += part, offset += part, bytes -= part;
    }
    return 1;
}

static void mark_inexact(const struct weir__spill_image *image, struct weir_recovered *found)
{
    found->exact = 0;
    found->repeated = has_inflight(image) ? image->file.inflight.bytes : 0;
}

/* Returns whether another writer has written to the range of the pending bytes, beyond the end of the file
 * that the owner saw. */
static bool has_foreign_write(const struct weir__spill_image *image, const struct weir__target *target,
                              uint64_t end)
{
    const struct weir__inflight *inflight = &image->file.inflight;
    uint64_t from = position(image), upto = from + pending_bytes(image),
             inflight_bytes = has_inflight(image) ? inflight->total : 0;
    if (target->same_description) {
        int64_t now = WEIR_CALL(weir__kernel.lseek(target->fd, 0, SEEK_CUR));
        if (now >= 0 && ((uint64_t)now < from || (uint64_t)now > from + inflight_bytes))
            return true;
    }
    uint64_t low = from > inflight->end ? from : inflight->end, high = end < upto ? end : upto;
    if (inflight->end == WEIR_SPILL_NONE || low >= high)
        return false;
    int same = compare_target(image, target, low, low - from + image->file.head.drained, high - low);
    return same < 0 ? end > from + inflight_bytes : !same;
}

static int resolve_positioned(struct weir__spill_image *image, const struct weir__target *target,
                              struct weir_recovered *found)
{
    int64_t end = end_of(target);
    if (end < 0)
        return (int)end;
    if (image->file.sink.type != S_IFREG || !has_foreign_write(image, target, (uint64_t)end))
        return 0;
    mark_inexact(image, found);
    int result = store_inflight(image, 0, (uint64_t)end);
    return result < 0 ? result : store_origin(image, (uint64_t)end);
}

/* The file's growth since the owner's write is that write's count, if the bytes there equal the buffer's. */
static int resolve_append(struct weir__spill_image *image, const struct weir__target *target,
                          struct weir_recovered *found)
{
    const struct weir__inflight *inflight = &image->file.inflight;
    int64_t end = has_inflight(image) ? end_of(target) : 0;
    if (!has_inflight(image) || end < 0)
        return (int)end;
    uint64_t size = (uint64_t)end, grown = size - inflight->end;
    if (inflight->end == WEIR_SPILL_NONE || size < inflight->end || grown > inflight->total) {
        mark_inexact(image, found);
        return 0;
    }
    uint64_t written = grown < inflight->bytes ? grown : inflight->bytes;
    if (compare_target(image, target, inflight->end, image->file.head.drained, written) != 1) {
        mark_inexact(image, found);
        return 0;
    }
    found->bytes -= written;
    return store_drained(image, written);
}

static int resolve_inflight(struct weir__spill_image *image, const struct weir__target *target,
                            struct weir_recovered *found)
{
    if (target->same_file && image->file.sink.kind == WEIR_SPILL_POSITIONED)
        return resolve_positioned(image, target, found);
    if (target->same_file && image->file.sink.kind == WEIR_SPILL_APPEND)
        return resolve_append(image, target, found);
    if (has_inflight(image))
        mark_inexact(image, found);
    return 0;
}

/* ---- writing ---- */

/* As weir__whole_records, but reads the buffer by pread(2). */
static uint64_t whole_records(const struct weir__spill_image *image, uint64_t bytes)
{
    char part[CHUNK];
    int separator = image->file.sink.separator;
    uint64_t at = image->file.buffer_at + image->file.head.drained;
    if (image->file.mode != WEIR_RECORD || bytes <= PIPE_BUF || separator < 0)
        return bytes;
    for (uint64_t scanned = 0; scanned < bytes; scanned += CHUNK) {
        size_t length = bytes - scanned < CHUNK ? (size_t)(bytes - scanned) : CHUNK;
        if (read_at(image->fd, part, length, at + scanned) != (int64_t)length)
            break;
        const char *end = scanned ? memchr(part, separator, length) : memrchr(part, separator, length);
        if (end)
            return scanned + (uint64_t)(end - part) + 1;
    }
    return bytes;
}

/* Calls write(2) once. Returns its count or -errno. */
static int64_t write_once(struct weir__spill_image *image, const struct weir__target *target,
                          const char *buffer)
{
    const char *from = buffer + image->file.head.drained;
    uint64_t bytes = pending_bytes(image);
    bool positioned = target->same_file && image->file.sink.kind == WEIR_SPILL_POSITIONED;
    bool append = target->same_file && image->file.sink.kind == WEIR_SPILL_APPEND;
    if (!target->same_file || image->file.sink.kind == WEIR_SPILL_SEQUENTIAL)
        bytes = whole_records(image, bytes);
    int64_t end = append ? WEIR_CALL(weir__kernel.lseek(target->fd, 0, SEEK_END)) : -1;
    int result = store_inflight(image, bytes,
                                positioned ? image->file.inflight.end
                                : end < 0  ? WEIR_SPILL_NONE
                                           : (uint64_t)end);
    if (result < 0)
        return result;
    if (positioned)
        return WEIR_CALL(weir__kernel.pwrite(target->fd, from, bytes, (off_t)position(image)));
    return WEIR_CALL(weir__kernel.write(target->fd, from, bytes));
}

static int write_all(struct weir__spill_image *image, const struct weir__target *target, const char *buffer)
{
    int result = 0;
    while (pending_bytes(image) && result == 0) {
        int64_t written = write_once(image, target, buffer);
        if (written > 0)
            result = store_drained(image, (uint64_t)written);
        else if (written != -EINTR)
            result = written == -EFAULT ? -EBADMSG /* the spill file was truncated */
                     : written          ? (int)written
                                        : -EIO;
    }
    int stored = store_inflight(image, 0, image->file.inflight.end);
    return result < 0 ? result : stored;
}

/* Moves the shared position behind the bytes, for other users of the open file description. */
static void advance_position(const struct weir__spill_image *image, const struct weir__target *target,
                             uint64_t from, uint64_t inflight_bytes)
{
    int64_t now = WEIR_CALL(weir__kernel.lseek(target->fd, 0, SEEK_CUR));
    if (now >= 0 && (uint64_t)now >= from && (uint64_t)now <= from + inflight_bytes)
        weir__kernel.lseek(target->fd, (off_t)position(image), SEEK_SET);
}

static int replay(struct weir__spill_image *image, const struct weir__target *target,
                  struct weir_recovered *found)
{
    uint64_t inflight_bytes = has_inflight(image) ? image->file.inflight.total : 0;
    int result = resolve_inflight(image, target, found);
    if (result < 0 || !pending_bytes(image))
        return result;
    void *memory = weir__kernel.mmap(NULL, image->size, PROT_READ, MAP_SHARED, image->fd, 0);
    if (memory == MAP_FAILED)
        return -errno;
    uint64_t from = position(image);
    /* Only the kernel reads the mapping: if the file is truncated, write(2) returns EFAULT. */
    result = write_all(image, target, (const char *)memory + image->file.buffer_at);
    weir__kernel.munmap(memory, image->size);
    if (target->same_file && image->file.sink.kind == WEIR_SPILL_POSITIONED)
        advance_position(image, target, from, inflight_bytes);
    return result;
}

static int lock_sink(int fd, short type)
{
    struct flock whole = {.l_type = type, .l_whence = SEEK_SET};
    int64_t result;
    do
        result = WEIR_CALL(weir__kernel.fcntl(fd, F_OFD_SETLKW, &whole));
    while (result == -EINTR);
    return result < 0 ? (int)result : 0;
}

int weir__replay(struct weir__spill_image *image, const struct weir__target *target,
                 struct weir_recovered *found)
{
    bool lock = target->same_file && image->file.sink.lock && pending_bytes(image);
    int result = lock ? lock_sink(target->fd, F_WRLCK) : 0;
    if (result < 0)
        return result;
    result = replay(image, target, found);
    if (lock)
        lock_sink(target->fd, F_UNLCK);
    return result;
}
