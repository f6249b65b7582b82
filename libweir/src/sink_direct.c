/* sink_direct.c: around the page cache (O_DIRECT). See direct.h for what goes which way, and why. */
#include "direct.h"

#include <sys/mman.h>
#include <unistd.h>

enum { BOUNCE = 256 * 1024 };

static bool is_multiple(uint64_t value, size_t of) { return value % of == 0; }

/* Where the next byte will be written, as the kernel sees it: others may share the position. */
static int64_t write_position(const weir_stream *s)
{
    const struct weir__own *own = weir__own(s);
    struct stat status;
    if (!own->append)
        return WEIR_CALL(weir__kernel.lseek(own->fd, 0, SEEK_CUR));
    int64_t result = WEIR_CALL(weir__kernel.fstat(own->fd, &status));
    return result < 0 ? result : (int64_t)status.st_size;
}

/* ---- a full buffer ends at a boundary ---- */

static void fit_to(weir_stream *s, int64_t pos)
{
    struct weir__own *own = weir__own(s);
    own->capacity = own->direct->capacity - (pos > 0 ? (size_t)pos % own->direct->unit : 0);
    weir__set_limits(s);
}

void weir__direct_fit(weir_stream *s)
{
    if (weir__own(s)->can_write)
        fit_to(s, write_position(s));
}

size_t weir__direct_past(weir_stream *s, const char *from, size_t bytes)
{
    const struct weir__direct *d = weir__own(s)->direct;
    if (bytes < d->capacity || weir__pending(s) || !is_multiple((uintptr_t)from, d->memory))
        return 0;
    int64_t pos = write_position(s);
    if (pos < 0 || !is_multiple((uint64_t)pos, d->block))
        return 0;
    size_t tail = (size_t)(((uint64_t)pos + bytes) % d->unit);
    return bytes > tail ? bytes - tail : 0;
}

/* ---- writing ---- */

static bool have_bounce(struct weir__direct *d)
{
    size_t bytes = weir__round_up(BOUNCE, d->unit);
    if (d->bounce)
        return true;
    void *got = weir__kernel.mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (got == MAP_FAILED)
        return false;
    d->bounce = got;
    d->bounce_bytes = bytes;
    return true;
}

/* How much of `total` bytes at `pos` one call takes, by which way. A write that is all whole blocks of the
 * device goes straight; any other is cut at whole pages, which the two ways do not share, but only if there
 * is a whole one in it: what is small stays in one piece. */
static uint64_t cut_at(struct weir__direct *d, uint64_t pos, uint64_t total)
{
    size_t unit = is_multiple(pos | total, d->block) ? d->block : d->unit;
    uint64_t over = pos % unit, head = over ? unit - over : 0;
    d->way = head || total < unit ? WEIR_PLAIN : WEIR_STRAIGHT;
    if (total < head + unit)
        return total;
    return head ? head : weir__round_down(total, unit);
}

/* From where it lies, or as much as the bounce takes. */
static uint64_t cut_by_address(struct weir__direct *d, const struct iovec *first, uint64_t bytes)
{
    uint64_t straight = bytes <= first->iov_len ? bytes : weir__round_down(first->iov_len, d->unit);
    if (straight && is_multiple((uintptr_t)first->iov_base, d->memory))
        return straight;
    d->way = have_bounce(d) ? WEIR_BOUNCED : WEIR_PLAIN;
    return bytes < d->bounce_bytes || d->way == WEIR_PLAIN ? bytes : d->bounce_bytes;
}

int weir__direct_cut(weir_stream *s, struct iovec *vector, int count)
{
    struct weir__direct *d = weir__own(s)->direct;
    uint64_t total = 0, bytes;
    int64_t pos = write_position(s);
    for (int i = 0; i < count; i++)
        total += vector[i].iov_len;
    d->error = pos < 0 ? (int)pos : 0;
    if (pos < 0 || total == 0)
        return count;
    bytes = cut_at(d, (uint64_t)pos, total);
    if (d->way == WEIR_STRAIGHT)
        bytes = cut_by_address(d, vector, bytes);
    for (int i = 0; i < count; i++) {
        if (bytes <= vector[i].iov_len) {
            vector[i].iov_len = (size_t)bytes;
            return i + 1;
        }
        bytes -= vector[i].iov_len;
    }
    return count;
}

static ssize_t write_bounced(weir_stream *s, const struct iovec *iov, int count)
{
    struct weir__direct *d = weir__own(s)->direct;
    struct iovec all = {d->bounce, 0};
    for (int i = 0; i < count; i++) {
        memcpy(d->bounce + all.iov_len, iov[i].iov_base, iov[i].iov_len);
        all.iov_len += iov[i].iov_len;
    }
    return weir__fd_write(s, &all, 1);
}

/* Refused although all looked right: the device needs more than is known, a limit on the file's size cut
 * the write, or others moved the position or the file's end. The page cache takes it. */
static ssize_t direct_write(weir_stream *s, const struct iovec *iov, int count)
{
    const struct weir__direct *d = weir__own(s)->direct;
    if (d->error)
        return d->error;
    ssize_t taken = -EINVAL;
    if (d->way == WEIR_STRAIGHT)
        taken = weir__fd_write(s, iov, count);
    else if (d->way == WEIR_BOUNCED)
        taken = write_bounced(s, iov, count);
    return taken == -EINVAL ? weir__plain_write(s, iov, count) : taken;
}

/* ---- reading ---- */

bool weir__direct_reads(weir_stream *s, const void *to, size_t bytes)
{
    const struct weir__direct *d = weir__own(s)->direct;
    int64_t pos = weir__kernel_pos(s);
    return pos >= 0 && is_multiple((uint64_t)pos, d->block) && is_multiple((uintptr_t)to, d->memory) &&
           bytes >= d->block;
}

size_t weir__direct_skew(const struct weir__own *own) { return own->direct->skew; }

/* Blocks may be read to there: from `head` bytes before the position on only if it is for weir__fill, into an
 * empty buffer, as these bytes lie before those that were asked for. */
static bool fits(const weir_stream *s, const char *to, size_t head)
{
    const struct weir__own *own = weir__own(s);
    bool fills = weir__unread(s) == 0 && to == (char *)(uintptr_t)s->held_read_limit;
    return (head == 0 || fills) && is_multiple((uintptr_t)to, own->direct->memory);
}

static bool is_behind_end(const struct weir__own *own, int64_t pos)
{
    struct stat status;
    return own->regular && weir__kernel.fstat(own->fd, &status) == 0 && pos >= (int64_t)status.st_size;
}

/* Whole blocks, of which `head` bytes are before the position `pos`. Returns how many bytes behind it were
 * read, or -EINVAL where only the page cache can say. */
static ssize_t read_blocks(weir_stream *s, char *to, size_t bytes, int64_t pos, size_t head)
{
    const struct weir__own *own = weir__own(s);
    struct weir__direct *d = own->direct;
    size_t room = weir__round_down(bytes, d->block);
    bool in_place = room && fits(s, to, head);
    if (!in_place) {
        if (!have_bounce(d))
            return -ENOMEM;
        room = weir__round_up(bytes + head, d->block);
        room = room < d->bounce_bytes ? room : d->bounce_bytes;
    }
    ssize_t got = WEIR_CALL(weir__kernel.pread(own->fd, in_place ? to : d->bounce, room, pos - (int64_t)head));
    if (got <= 0)
        return got;
    if (got <= (ssize_t)head) /* the end, or a short count */
        return is_behind_end(own, pos) ? 0 : -EINVAL;
    got -= (ssize_t)head;
    if (in_place) {
        d->skew = head;
        return got;
    }
    got = (size_t)got < bytes ? got : (ssize_t)bytes;
    memcpy(to, d->bounce + head, (size_t)got);
    return got;
}

static ssize_t direct_read(weir_stream *s, void *to, size_t bytes)
{
    const struct weir__own *own = weir__own(s);
    struct weir__direct *d = own->direct;
    int64_t pos = WEIR_CALL(weir__kernel.lseek(own->fd, 0, SEEK_CUR));
    if (pos < 0)
        return pos;
    d->skew = 0;
    size_t head = (size_t)((uint64_t)pos % d->block);
    ssize_t got;
    if (head == 0 && bytes >= d->block && fits(s, to, 0)) {
        got = weir__fd_read(s, to, weir__round_down(bytes, d->block)); /* which moves the position as well */
    } else {
        got = read_blocks(s, to, bytes, pos, head);
        int64_t moved = got > 0 ? WEIR_CALL(weir__kernel.lseek(own->fd, pos + got, SEEK_SET)) : 0;
        got = moved < 0 ? moved : got;
    }
    return got == -EINVAL ? weir__plain_read(s, to, bytes) : got;
}

/* ---- the rest ---- */

static int64_t direct_seek(weir_stream *s, int64_t offset, int whence)
{
    int64_t pos = weir__fd_seek(s, offset, whence);
    const struct weir__own *own = weir__own(s);
    if (pos >= 0 && own->can_write && !own->append && weir__written(s) == 0)
        fit_to(s, pos);
    return pos;
}

const struct weir__sink weir__sink_direct = {
    .write = direct_write,
    .read = direct_read,
    .seek = direct_seek,
    .sync = weir__fd_sync,
    .close = weir__fd_close,
};
