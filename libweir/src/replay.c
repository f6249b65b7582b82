/* replay.c: what waits in the file of a dead owner, to its sink. Each step is noted in the file, so that who
 * comes after a kill of this process, or after an error, goes on where it ended. */
#include "spill.h"

#include <limits.h>
#include <sys/mman.h>
#include <unistd.h>

#include "format.h"

enum { PART = 4096 };

/* ---- reading the file: not by a map, which who truncates it would make a trap ---- */

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

static uint64_t waiting(const struct weir__remains *r)
{
    const struct weir_head *head = &r->file.head;
    return head->drained < head->written ? head->written - head->drained : 0;
}

static uint64_t position(const struct weir__remains *r) { return r->file.origin + r->file.head.drained; }

static bool in_flight(const struct weir__remains *r) { return waiting(r) && r->file.flight.from == r->file.head.drained; }

static bool is_layout_right(const struct weir__spill_file *file)
{
    return file->head.magic == WEIR_HEAD_MAGIC && file->head.layout == WEIR_LAYOUT && file->head.base == 0 &&
           file->magic == WEIR_SPILL_MAGIC && file->layout == WEIR_SPILL_LAYOUT &&
           file->seal == weir__spill_seal(&file->sink);
}

static bool is_sink_right(const struct weir__spill_sink *sink)
{
    return sink->kind <= WEIR_SPILL_FLOW && sink->lock <= 1 && sink->separator >= -1 && sink->separator <= 255 &&
           memchr(sink->path, 0, sizeof sink->path) && (sink->path[0] == 0 || sink->path[0] == '/');
}

/* No offset may lead out of the file, nor a sum of them around. */
static bool are_offsets_right(const struct weir__remains *r)
{
    const struct weir__spill_file *file = &r->file;
    const struct weir_head *head = &file->head;
    if (file->buffer_at < sizeof *file || file->buffer_at % PART || file->buffer_at >= r->size)
        return false;
    uint64_t room = r->size - file->buffer_at;
    if (head->buffer_bytes == 0 || head->buffer_bytes > room || head->written > room || head->drained > room)
        return false;
    if (file->mode < WEIR_NONE || file->mode > WEIR_RECORD)
        return false;
    if (waiting(r) && file->sink.kind == WEIR_SPILL_PLAIN && position(r) > (uint64_t)INT64_MAX - waiting(r))
        return false;
    const struct weir__flight *flight = &file->flight;
    if (flight->end != WEIR_SPILL_NONE && flight->end > INT64_MAX)
        return false;
    return !in_flight(r) || (flight->bytes > 0 && flight->bytes <= waiting(r) && flight->total >= flight->bytes &&
                             flight->total <= INT64_MAX);
}

int weir__remains_load(struct weir__remains *r, int fd)
{
    struct stat status;
    r->fd = fd;
    int result = (int)WEIR_CALL(weir__kernel.fstat(fd, &status));
    if (result < 0)
        return result;
    r->size = (uint64_t)status.st_size;
    int64_t got = read_at(fd, &r->file, sizeof r->file, 0);
    if (got < 0)
        return (int)got;
    if (got < (int64_t)sizeof r->file || !is_layout_right(&r->file))
        return -EBADMSG;
    return is_sink_right(&r->file.sink) && are_offsets_right(r) ? 0 : -EBADMSG;
}

void weir__remains_tell(const struct weir__remains *r, struct weir_recovered *found)
{
    found->bytes = waiting(r);
    found->pid = r->file.head.pid;
    found->exact = 1;
    found->repeated = 0;
    _Static_assert(sizeof found->path == sizeof r->file.sink.path, "a path is a path");
    memcpy(found->path, r->file.sink.path, sizeof found->path);
}

/* ---- noting what is done ---- */

#define NOTE(r, field) write_at((r)->fd, &(r)->file.field, sizeof(r)->file.field, offsetof(struct weir__spill_file, field))

/* In one piece: a kill does not divide what is copied within a page. */
static int note_flight(struct weir__remains *r, uint64_t bytes, uint64_t end)
{
    uint64_t from = bytes ? r->file.head.drained : WEIR_SPILL_NONE;
    r->file.flight = (struct weir__flight){from, bytes, bytes, end};
    return NOTE(r, flight);
}

static int note_drained(struct weir__remains *r, uint64_t bytes)
{
    r->file.head.drained += bytes;
    return NOTE(r, head.drained);
}

static int note_origin(struct weir__remains *r, uint64_t next)
{
    r->file.origin = next - r->file.head.drained;
    return NOTE(r, origin);
}

/* ---- what of it the sink has already ---- */

bool weir__is_sink(const struct weir__remains *r, int fd)
{
    struct weir__spill_sink now;
    const struct weir__spill_sink *was = &r->file.sink;
    if (weir__spill_identify(fd, &now) < 0 || now.dev != was->dev || now.ino != was->ino || now.type != was->type)
        return false;
    return now.born == was->born || !now.born || !was->born;
}

static int64_t end_of(const struct weir__target *target)
{
    struct stat status;
    int64_t result = WEIR_CALL(weir__kernel.fstat(target->fd, &status));
    return result < 0 ? result : (int64_t)status.st_size;
}

/* 1: the target has at `at` what lies in the buffer from `offset` on; 0: it has not; -1: it cannot be read. */
static int has(const struct weir__remains *r, const struct weir__target *target, uint64_t at, uint64_t offset, uint64_t bytes)
{
    char ours[PART], theirs[PART];
    while (bytes) {
        size_t part = bytes < PART ? (size_t)bytes : PART;
        if (target->reader < 0 || read_at(target->reader, theirs, part, at) != (int64_t)part ||
            read_at(r->fd, ours, part, r->file.buffer_at + offset) != (int64_t)part)
            return -1;
        if (memcmp(ours, theirs, part) != 0)
            return 0;
        at += part, offset += part, bytes -= part;
    }
    return 1;
}

static void is_not_exact(const struct weir__remains *r, struct weir_recovered *found)
{
    found->exact = 0;
    found->repeated = in_flight(r) ? r->file.flight.bytes : 0;
}

/* Has anyone written where ours will go, into what was behind the end when the owner looked? */
static bool others_wrote(const struct weir__remains *r, const struct weir__target *target, uint64_t end)
{
    const struct weir__flight *flight = &r->file.flight;
    uint64_t from = position(r), upto = from + waiting(r), flown = in_flight(r) ? flight->total : 0;
    if (target->shares) {
        int64_t now = WEIR_CALL(weir__kernel.lseek(target->fd, 0, SEEK_CUR));
        if (now >= 0 && ((uint64_t)now < from || (uint64_t)now > from + flown))
            return true;
    }
    uint64_t low = from > flight->end ? from : flight->end, high = end < upto ? end : upto;
    if (flight->end == WEIR_SPILL_NONE || low >= high)
        return false;
    int same = has(r, target, low, low - from + r->file.head.drained, high - low);
    return same < 0 ? end > from + flown : !same;
}

static int place_plain(struct weir__remains *r, const struct weir__target *target, struct weir_recovered *found)
{
    int64_t end = end_of(target);
    if (end < 0)
        return (int)end;
    if (r->file.sink.type != S_IFREG || !others_wrote(r, target, (uint64_t)end))
        return 0;
    is_not_exact(r, found);
    int result = note_flight(r, 0, (uint64_t)end);
    return result < 0 ? result : note_origin(r, (uint64_t)end);
}

/* The file's growth is what the write in flight did, if the bytes there are ours. */
static int place_append(struct weir__remains *r, const struct weir__target *target, struct weir_recovered *found)
{
    const struct weir__flight *flight = &r->file.flight;
    int64_t end = in_flight(r) ? end_of(target) : 0;
    if (!in_flight(r) || end < 0)
        return (int)end;
    uint64_t size = (uint64_t)end, grown = size - flight->end;
    if (flight->end == WEIR_SPILL_NONE || size < flight->end || grown > flight->total) {
        is_not_exact(r, found);
        return 0;
    }
    uint64_t written = grown < flight->bytes ? grown : flight->bytes;
    if (has(r, target, flight->end, r->file.head.drained, written) != 1) {
        is_not_exact(r, found);
        return 0;
    }
    found->bytes -= written;
    return note_drained(r, written);
}

static int place(struct weir__remains *r, const struct weir__target *target, struct weir_recovered *found)
{
    if (target->same && r->file.sink.kind == WEIR_SPILL_PLAIN)
        return place_plain(r, target, found);
    if (target->same && r->file.sink.kind == WEIR_SPILL_APPEND)
        return place_append(r, target, found);
    if (in_flight(r))
        is_not_exact(r, found);
    return 0;
}

/* ---- writing ---- */

/* As weir__whole_records, without looking into a map. */
static uint64_t whole_records(const struct weir__remains *r, uint64_t bytes)
{
    char part[PART];
    int separator = r->file.sink.separator;
    uint64_t at = r->file.buffer_at + r->file.head.drained;
    if (r->file.mode != WEIR_RECORD || bytes <= PIPE_BUF || separator < 0)
        return bytes;
    for (uint64_t seen = 0; seen < bytes; seen += PART) {
        size_t length = bytes - seen < PART ? (size_t)(bytes - seen) : PART;
        if (read_at(r->fd, part, length, at + seen) != (int64_t)length)
            break;
        const char *end = seen ? memchr(part, separator, length) : memrchr(part, separator, length);
        if (end)
            return seen + (uint64_t)(end - part) + 1;
    }
    return bytes;
}

/* One write(2). Returns what it took. */
static int64_t write_some(struct weir__remains *r, const struct weir__target *target, const char *buffer)
{
    const char *from = buffer + r->file.head.drained;
    uint64_t bytes = waiting(r);
    bool plain = target->same && r->file.sink.kind == WEIR_SPILL_PLAIN;
    bool append = target->same && r->file.sink.kind == WEIR_SPILL_APPEND;
    if (!target->same || r->file.sink.kind == WEIR_SPILL_FLOW)
        bytes = whole_records(r, bytes);
    int64_t end = append ? WEIR_CALL(weir__kernel.lseek(target->fd, 0, SEEK_END)) : -1;
    int result = note_flight(r, bytes, plain ? r->file.flight.end : end < 0 ? WEIR_SPILL_NONE : (uint64_t)end);
    if (result < 0)
        return result;
    if (plain)
        return WEIR_CALL(weir__kernel.pwrite(target->fd, from, bytes, (off_t)position(r)));
    return WEIR_CALL(weir__kernel.write(target->fd, from, bytes));
}

static int write_all(struct weir__remains *r, const struct weir__target *target, const char *buffer)
{
    int result = 0;
    while (waiting(r) && result == 0) {
        int64_t taken = write_some(r, target, buffer);
        if (taken > 0)
            result = note_drained(r, (uint64_t)taken);
        else if (taken != -EINTR)
            result = taken == -EFAULT ? -EBADMSG : taken ? (int)taken : -EIO; /* it was cut off under us */
    }
    int noted = note_flight(r, 0, r->file.flight.end);
    return result < 0 ? result : noted;
}

/* Who writes to the same open file description goes on behind these bytes. */
static void move_on(const struct weir__remains *r, const struct weir__target *target, uint64_t from, uint64_t flown)
{
    int64_t now = WEIR_CALL(weir__kernel.lseek(target->fd, 0, SEEK_CUR));
    if (now >= 0 && (uint64_t)now >= from && (uint64_t)now <= from + flown)
        weir__kernel.lseek(target->fd, (off_t)position(r), SEEK_SET);
}

static int replay(struct weir__remains *r, const struct weir__target *target, struct weir_recovered *found)
{
    uint64_t flown = in_flight(r) ? r->file.flight.total : 0;
    int result = place(r, target, found);
    if (result < 0 || !waiting(r))
        return result;
    void *memory = weir__kernel.mmap(NULL, r->size, PROT_READ, MAP_SHARED, r->fd, 0);
    if (memory == MAP_FAILED)
        return -errno;
    uint64_t from = position(r);
    result = write_all(r, target, (const char *)memory + r->file.buffer_at); /* only the kernel reads it */
    weir__kernel.munmap(memory, r->size);
    if (target->same && r->file.sink.kind == WEIR_SPILL_PLAIN)
        move_on(r, target, from, flown);
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

int weir__replay(struct weir__remains *r, const struct weir__target *target, struct weir_recovered *found)
{
    bool lock = target->same && r->file.sink.lock && waiting(r);
    int result = lock ? lock_sink(target->fd, F_WRLCK) : 0;
    if (result < 0)
        return result;
    result = replay(r, target, found);
    if (lock)
        lock_sink(target->fd, F_UNLCK);
    return result;
}
