/* direct.h: private structures of WEIR_DIRECT streams.
 *
 * O_DIRECT transfers whole blocks only: position, length and memory address must be multiples of the
 * device's alignment. All other bytes (those before the first boundary after an odd position, the tail at a
 * flush) go through the page cache, so that the surrounding bytes of the file stay and its size is exact.
 * The two routes share a page of the cache only if the program seeks back. The kernel keeps both coherent,
 * but each change of the route within one page costs a write-back.
 *
 * weir__direct_align_capacity chooses the buffer's capacity so that a full buffer ends at a boundary; a
 * program that only writes then transfers whole blocks. This is an optimization: weir__direct_trim chooses
 * the route anew for each write, from the kernel's file position.
 *
 * The page cache is accessed through a second descriptor for the same file. It is opened at the first use
 * and closed with the stream: an earlier close would drop the process's fcntl(2) locks and raise IN_CLOSE
 * events. If it cannot be opened (no /proc, no permission, descriptor limit), O_DIRECT is switched off for
 * the duration of the transfer. Another user of the open file description may then also transfer through
 * the page cache, which is harmless. */
#ifndef WEIR_DIRECT_H
#define WEIR_DIRECT_H

#include "private.h"

struct weir__direct {
    size_t memory_align; /* addresses must be multiples of this */
    size_t block_align;  /* positions and lengths must be multiples of this */
    size_t unit;         /* a multiple of block_align and of the page size */
    size_t capacity;     /* of the write buffer: whole units */
    char *bounce;        /* for data at unaligned addresses; NULL: not allocated yet */
    size_t bounce_bytes;
    uint64_t dev, ino; /* of the file: detects that the program closed cached_fd and reused its number */
    int cached_fd;     /* the second descriptor, without O_DIRECT; -1: none */
    int saved_flags;   /* the descriptor's original flags; -1: weir_open set O_DIRECT */
    int flags_pid;     /* the process that changed them, and restores them at close */
    size_t skew;       /* bytes that the last fill read before the wanted position, from its block's start */
    /* Result of weir__direct_trim for the next write. */
    int error;
    enum { WEIR_VIA_DIRECT, WEIR_VIA_BOUNCE, WEIR_VIA_CACHE } route;
};

static inline size_t weir__round_down(uint64_t value, size_t unit) { return (size_t)(value - value % unit); }
static inline size_t weir__round_up(uint64_t value, size_t unit)
{
    return weir__round_down(value + unit - 1, unit);
}

/* direct_cached.c: transfers through the page cache, at the descriptor's position, which they advance */
ssize_t weir__cached_write(weir_stream *s, const struct iovec *iov, int count);
ssize_t weir__cached_read(weir_stream *s, void *to, size_t bytes);
void weir__cached_close(weir_stream *s);

#endif /* WEIR_DIRECT_H */
