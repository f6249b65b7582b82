/* direct.h: what the parts of a WEIR_DIRECT stream share. Private.
 *
 * O_DIRECT takes whole blocks only: position, length and address have to be multiples of what the device
 * needs. Everything else - the bytes up to the first boundary behind an odd position, the tail at a flush -
 * goes through the page cache, so that what the file has around them stays and its size is exact. The two
 * ways never share a page of the cache unless the program moves back: the kernel keeps them coherent, but
 * each change from one to the other in one page costs a write-back.
 *
 * The buffer's capacity is chosen such that a full buffer ends at a boundary (weir__direct_align_capacity), so that a
 * program that only writes gives whole blocks all the time. That is for speed: what goes which way is
 * decided anew for each write, from where the kernel says that the file is (weir__direct_trim).
 *
 * The page cache is reached through a second descriptor of the same file, opened when it is first needed
 * and closed with the stream: closing one in between would drop the process's fcntl(2) locks, and look
 * like the end of the work to who watches the file. Where it cannot be opened (no /proc, no permission, no
 * descriptor left), O_DIRECT is put off for the moment of the write; who shares the open file description
 * may then meet the page cache as well, and nothing worse. */
#ifndef WEIR_DIRECT_H
#define WEIR_DIRECT_H

#include "private.h"

struct weir__direct {
    size_t memory_align; /* an address must be a multiple of this */
    size_t block_align;  /* and a position and a length of this */
    size_t unit;         /* blocks that are whole pages of the cache as well */
    size_t capacity;     /* of the write buffer, in whole units */
    char *bounce;        /* for what lies at the wrong address; NULL: not needed so far */
    size_t bounce_bytes;
    uint64_t dev, ino;   /* of the file: a program may close descriptors that are not its own */
    int cached_fd;       /* the second descriptor; -1: none */
    int saved_flags;     /* the descriptor's flags as they were found; -1: as weir_open made them */
    size_t skew;         /* what was read lies so far behind where it was wanted: its block begins there */
    /* What weir__direct_trim found for the write that comes next. */
    int error;
    enum { WEIR_VIA_DIRECT, WEIR_VIA_BOUNCE, WEIR_VIA_CACHE } route;
};

static inline size_t weir__round_down(uint64_t value, size_t unit) { return (size_t)(value - value % unit); }
static inline size_t weir__round_up(uint64_t value, size_t unit)
{
    return weir__round_down(value + unit - 1, unit);
}

/* direct_plain.c: through the page cache, at the descriptor's position, which moves on */
ssize_t weir__cached_write(weir_stream *s, const struct iovec *iov, int count);
ssize_t weir__cached_read(weir_stream *s, void *to, size_t bytes);
void weir__cached_close(weir_stream *s);

#endif /* WEIR_DIRECT_H */
