/* direct_make.c: what a file's device needs for O_DIRECT, and the buffers that follow from it. */
#include "direct.h"

#include <linux/fs.h>
#include <sys/mman.h>
#include <unistd.h>

enum { GUESS = 4096, BLOCK_MAX = 1 << 20 };

/* The kernel's struct statx; the C library's may be older. */
struct status {
    uint32_t mask, others[37];
    uint32_t memory, block; /* stx_dio_mem_align; stx_dio_offset_align, which is the length's as well */
    uint32_t more[24];
};
enum { ASK_DIRECT = 0x2000 /* STATX_DIOALIGN */, ASK_THIS_FILE = 0x1000 /* AT_EMPTY_PATH */ };

static bool is_usable(uint64_t value) { return value > 0 && value <= BLOCK_MAX && !(value & (value - 1)); }

/* Linux 6.1 and later tell; a device tells its blocks; otherwise 4096, which nearly all take. A guess that
 * is too small costs a refused call, and the page cache takes the bytes. */
static int ask_needs(int fd, bool block_device, struct weir__direct *d)
{
    struct status status;
    memset(&status, 0, sizeof status);
    int bytes = 0;
    d->memory = d->block = GUESS;
    if (weir__kernel.statx(fd, "", ASK_THIS_FILE, ASK_DIRECT, &status) == 0 && status.mask & ASK_DIRECT) {
        if (status.block == 0)
            return -EINVAL; /* not this file, though its file system has it */
        if (is_usable(status.block) && is_usable(status.memory) && status.memory <= weir__page) {
            d->memory = status.memory;
            d->block = status.block;
        }
    } else if (block_device && weir__kernel.ioctl(fd, BLKSSZGET, &bytes) == 0 && is_usable((uint64_t)bytes)) {
        d->memory = d->block = (size_t)bytes;
    }
    return 0;
}

/* A descriptor that was opened without it gets O_DIRECT now, and loses it at the end. */
static int switch_on(int fd, struct weir__direct *d)
{
    int64_t flags = WEIR_CALL(weir__kernel.fcntl(fd, F_GETFL, NULL));
    if (flags < 0)
        return (int)flags;
    if (flags & O_DIRECT)
        return 0;
    int64_t result = WEIR_CALL(weir__kernel.fcntl(fd, F_SETFL, (void *)(intptr_t)(flags | O_DIRECT)));
    d->was = result < 0 ? -1 : (int)flags;
    return (int)result;
}

int weir__direct_make(weir_stream *s)
{
    struct weir__own *own = weir__own(s);
    struct stat status;
    if (!own->regular && !own->block)
        return -EINVAL; /* on a pipe O_DIRECT means something else */
    struct weir__direct *d = calloc(1, sizeof *d);
    if (!d)
        return -ENOMEM;
    own->direct = d; /* from here on weir__direct_free ends it */
    d->plain = d->was = -1;
    int result = (int)WEIR_CALL(weir__kernel.fstat(own->fd, &status));
    if (result == 0)
        result = switch_on(own->fd, d);
    if (result == 0)
        result = ask_needs(own->fd, own->block, d);
    d->dev = status.st_dev;
    d->ino = status.st_ino;
    d->unit = d->block > weir__page ? d->block : weir__page;
    return result;
}

/* The descriptor is still open. */
void weir__direct_free(weir_stream *s)
{
    struct weir__own *own = weir__own(s);
    struct weir__direct *d = own->direct;
    weir__plain_close(s);
    if (d->was >= 0)
        weir__kernel.fcntl(own->fd, F_SETFL, (void *)(intptr_t)d->was);
    if (d->bounce)
        weir__kernel.munmap(d->bounce, d->bounce_bytes);
    free(d);
    own->direct = NULL;
}

/* ---- buffers ---- */

/* Own buffers: whole units, at least what was asked for. */
size_t weir__direct_size(const struct weir__own *own, size_t bytes)
{
    return weir__round_up(bytes ? bytes : 1, own->direct->unit);
}

void weir__direct_sized(struct weir__own *own) { own->direct->capacity = own->capacity; }

/* Of the caller's memory the part that serves: whole units at an address that is right. False: there is
 * less than one. */
bool weir__direct_part_of(const struct weir__own *own, char **memory, size_t *bytes)
{
    const struct weir__direct *d = own->direct;
    size_t over = (size_t)((uintptr_t)*memory % d->memory), skip = over ? d->memory - over : 0;
    if (*bytes < skip + d->unit)
        return false;
    *memory += skip;
    *bytes = weir__round_down(*bytes - skip, d->unit);
    return true;
}
