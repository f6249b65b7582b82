/* sink_direct.c: streams that bypass the page cache (O_DIRECT). direct.h describes the routes. */
#include "direct.h"

#include <sys/mman.h>
#include <unistd.h>

enum { BOUNCE_BYTES = 256 * 1024 };

static bool is_multiple(uint64_t value, size_t of) { return value % of == 0; }

/* Returns the position of the next write from the kernel: it may be shared. */
static int64_t write_position(const weir_stream *s)
{
    const struct weir__config *config = weir__config(s);
    struct stat status;
    if (!config->append)
        return WEIR_CALL(weir__kernel.lseek(config->fd, 0, SEEK_CUR));
    int64_t result = WEIR_CALL(weir__kernel.fstat(config->fd, &status));
    return result < 0 ? result : (int64_t)status.st_size;
}

/* ---- capacity: a full buffer ends at a boundary ---- */

static void set_aligned_capacity(weir_stream *s, int64_t pos)
{
    struct weir__config *config = weir__config(s);
    config->capacity = config->direct->capacity - (pos > 0 ? (size_t)pos % config->direct->unit : 0);
    weir__set_limits(s);
}

void weir__direct_align_capacity(weir_stream *s)
{
    if (weir__config(s)->can_write)
        set_aligned_capacity(s, write_position(s));
}

size_t weir__direct_write_bypass(weir_stream *s, const char *from, size_t bytes)
{
    const struct weir__direct *d = weir__config(s)->direct;
    if (bytes < d->capacity || weir__pending(s) || !is_multiple((uintptr_t)from, d->memory_align))
        return 0;
    int64_t pos = write_position(s);
    if (pos < 0 || !is_multiple((uint64_t)pos, d->block_align))
        return 0;
    size_t tail = (size_t)(((uint64_t)pos + bytes) % d->unit);
    return bytes > tail ? bytes - tail : 0;
}

/* ---- writing ---- */

static bool ensure_bounce(struct weir__direct *d)
{
    size_t bytes = weir__round_up(BOUNCE_BYTES, d->unit);
    if (d->bounce)
        return true;
    void *got = weir__kernel.mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (got == MAP_FAILED)
        return false;
    d->bounce = got;
    d->bounce_bytes = bytes;
    return true;
}

/* Chooses the route for `total` bytes at `pos` and returns how many of them one call takes. Whole device
 * blocks go directly. Other writes are divided at page boundaries, because the two routes should not share
 * a page, but only if they contain a whole page. */
static uint64_t choose_route(struct weir__direct *d, uint64_t pos, uint64_t total)
{
    size_t unit = is_multiple(pos | total, d->block_align) ? d->block_align : d->unit;
    uint64_t over = pos % unit, lead_bytes = over ? unit - over : 0;
    d->route = lead_bytes || total < unit ? WEIR_VIA_CACHE : WEIR_VIA_DIRECT;
    if (total < lead_bytes + unit)
        return total;
    return lead_bytes ? lead_bytes : weir__round_down(total, unit);
}

/* Returns how many bytes can be written from where they are, or from the bounce buffer. */
static uint64_t choose_buffer(struct weir__direct *d, const struct iovec *first, uint64_t bytes)
{
    uint64_t straight = bytes <= first->iov_len ? bytes : weir__round_down(first->iov_len, d->unit);
    if (straight && is_multiple((uintptr_t)first->iov_base, d->memory_align))
        return straight;
    d->route = ensure_bounce(d) ? WEIR_VIA_BOUNCE : WEIR_VIA_CACHE;
    return bytes < d->bounce_bytes || d->route == WEIR_VIA_CACHE ? bytes : d->bounce_bytes;
}

int weir__direct_trim(weir_stream *s, struct iovec *vector, int count)
{
    struct weir__direct *d = weir__config(s)->direct;
    uint64_t total = 0, bytes;
    int64_t pos = write_position(s);
    for (int i = 0; i < count; i++)
        total += vector[i].iov_len;
    d->error = pos < 0 ? (int)pos : 0;
    if (pos < 0 || total == 0)
        return count;
    bytes = choose_route(d, (uint64_t)pos, total);
    if (d->route == WEIR_VIA_DIRECT)
        bytes = choose_buffer(d, vector, bytes);
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
    struct weir__direct *d = weir__config(s)->direct;
    struct iovec all = {d->bounce, 0};
    for (int i = 0; i < count; i++) {
        memcpy(d->bounce + all.iov_len, iov[i].iov_base, iov[i].iov_len);
        all.iov_len += iov[i].iov_len;
    }
    return weir__fd_write(s, &all, 1);
}

/* The kernel can refuse an aligned write: the device needs a larger alignment than it reported,
 * RLIMIT_FSIZE cut the write, or another writer moved the position or the end. Such bytes go through the
 * page cache. */
static ssize_t direct_write(weir_stream *s, const struct iovec *iov, int count)
{
    const struct weir__direct *d = weir__config(s)->direct;
    if (d->error)
        return d->error;
    ssize_t written = -EINVAL;
    if (d->route == WEIR_VIA_DIRECT)
        written = weir__fd_write(s, iov, count);
    else if (d->route == WEIR_VIA_BOUNCE)
        written = write_bounced(s, iov, count);
    return written == -EINVAL ? weir__cached_write(s, iov, count) : written;
}

/* ---- reading ---- */

bool weir__direct_can_read_bypass(weir_stream *s, const void *to, size_t bytes)
{
    const struct weir__direct *d = weir__config(s)->direct;
    int64_t pos = weir__kernel_pos(s);
    return pos >= 0 && is_multiple((uint64_t)pos, d->block_align) &&
           is_multiple((uintptr_t)to, d->memory_align) && bytes >= d->block_align;
}

size_t weir__direct_skew(const struct weir__config *config) { return config->direct->skew; }

/* Returns whether whole blocks can be read to `to`. If the first block begins `lead_bytes` before the
 * position, only a fill of the empty read buffer can take these bytes. */
static bool is_direct_target(const weir_stream *s, const char *to, size_t lead_bytes)
{
    const struct weir__config *config = weir__config(s);
    bool fills = weir__unread(s) == 0 && to == (char *)(uintptr_t)s->held_read_limit;
    return (lead_bytes == 0 || fills) && is_multiple((uintptr_t)to, config->direct->memory_align);
}

static bool is_past_end(const struct weir__config *config, int64_t pos)
{
    struct stat status;
    return config->regular && weir__kernel.fstat(config->fd, &status) == 0 && pos >= (int64_t)status.st_size;
}

/* Reads whole blocks; `lead_bytes` bytes of them precede `pos`. Returns the number of bytes after `pos`, or
 * -EINVAL if only the page cache can answer. */
static ssize_t read_blocks(weir_stream *s, char *to, size_t bytes, int64_t pos, size_t lead_bytes)
{
    const struct weir__config *config = weir__config(s);
    struct weir__direct *d = config->direct;
    size_t room = weir__round_down(bytes, d->block_align);
    bool in_place = room && is_direct_target(s, to, lead_bytes);
    if (!in_place) {
        if (!ensure_bounce(d))
            return -ENOMEM;
        room = weir__round_up(bytes + lead_bytes, d->block_align);
        room = room < d->bounce_bytes ? room : d->bounce_bytes;
    }
    ssize_t got =
        WEIR_CALL(weir__kernel.pread(config->fd, in_place ? to : d->bounce, room, pos - (int64_t)lead_bytes));
    if (got <= 0)
        return got;
    if (got <= (ssize_t)lead_bytes) /* the end of the file, or a short count */
        return is_past_end(config, pos) ? 0 : -EINVAL;
    got -= (ssize_t)lead_bytes;
    if (in_place) {
        d->skew = lead_bytes;
        return got;
    }
    got = (size_t)got < bytes ? got : (ssize_t)bytes;
    memcpy(to, d->bounce + lead_bytes, (size_t)got);
    return got;
}

static ssize_t direct_read(weir_stream *s, void *to, size_t bytes)
{
    const struct weir__config *config = weir__config(s);
    struct weir__direct *d = config->direct;
    int64_t pos = WEIR_CALL(weir__kernel.lseek(config->fd, 0, SEEK_CUR));
    if (pos < 0)
        return pos;
    d->skew = 0;
    size_t lead_bytes = (size_t)((uint64_t)pos % d->block_align);
    ssize_t got;
    if (lead_bytes == 0 && bytes >= d->block_align && is_direct_target(s, to, 0)) {
        got = weir__fd_read(s, to, weir__round_down(bytes, d->block_align)); /* advances the position */
    } else {
        got = read_blocks(s, to, bytes, pos, lead_bytes);
        int64_t moved = got > 0 ? WEIR_CALL(weir__kernel.lseek(config->fd, pos + got, SEEK_SET)) : 0;
        got = moved < 0 ? moved : got;
    }
    return got == -EINVAL ? weir__cached_read(s, to, bytes) : got;
}

/* ---- the other operations ---- */

static int64_t direct_seek(weir_stream *s, int64_t offset, int whence)
{
    int64_t pos = weir__fd_seek(s, offset, whence);
    const struct weir__config *config = weir__config(s);
    if (pos >= 0 && config->can_write && !config->append && weir__written(s) == 0)
        set_aligned_capacity(s, pos);
    return pos;
}

const struct weir__sink weir__sink_direct = {
    .write = direct_write,
    .read = direct_read,
    .seek = direct_seek,
    .sync = weir__fd_sync,
    .close = weir__fd_close,
};
