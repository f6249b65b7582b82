/* direct_init.c: finds the alignment that O_DIRECT needs for a file, and aligns the buffers. */
#include "direct.h"

#include <linux/fs.h>
#include <sys/mman.h>
#include <unistd.h>

enum { DEFAULT_ALIGN = 4096, MAX_ALIGN = 1 << 20 };

/* The kernel's struct statx; the C library's may be older. */
struct statx_result {
    uint32_t mask, others[37];
    uint32_t memory_align, block_align; /* stx_dio_mem_align, stx_dio_offset_align */
    uint32_t more[24];
};
enum { STATX_DIOALIGN_MASK = 0x2000 /* STATX_DIOALIGN */, EMPTY_PATH_FLAG = 0x1000 /* AT_EMPTY_PATH */ };

static bool is_valid_alignment(uint64_t value)
{
    return value > 0 && value <= MAX_ALIGN && !(value & (value - 1));
}

/* Finds the alignment: statx(2) reports it since Linux 6.1, a block device by BLKSSZGET. Otherwise assumes
 * 4096, which nearly all devices accept. If that is too small, the kernel refuses a call and the page cache
 * takes the bytes. */
static int query_alignment(int fd, bool block_device, struct weir__direct *d)
{
    struct statx_result statx_result;
    memset(&statx_result, 0, sizeof statx_result);
    int bytes = 0;
    d->memory_align = d->block_align = DEFAULT_ALIGN;
    if (weir__kernel.statx(fd, "", EMPTY_PATH_FLAG, STATX_DIOALIGN_MASK, &statx_result) == 0 &&
        statx_result.mask & STATX_DIOALIGN_MASK) {
        if (statx_result.block_align == 0)
            return -EINVAL; /* the file system supports O_DIRECT, but not for this file */
        if (is_valid_alignment(statx_result.block_align) && is_valid_alignment(statx_result.memory_align) &&
            statx_result.memory_align <= weir__page) {
            d->memory_align = statx_result.memory_align;
            d->block_align = statx_result.block_align;
        }
    } else if (block_device && weir__kernel.ioctl(fd, BLKSSZGET, &bytes) == 0 &&
               is_valid_alignment((uint64_t)bytes)) {
        d->memory_align = d->block_align = (size_t)bytes;
    }
    return 0;
}

/* Sets O_DIRECT on a descriptor that was opened without it, and notes the original flags. */
static int set_direct_flag(int fd, struct weir__direct *d)
{
    int64_t flags = WEIR_CALL(weir__kernel.fcntl(fd, F_GETFL, NULL));
    if (flags < 0)
        return (int)flags;
    if (flags & O_DIRECT)
        return 0;
    int64_t result = WEIR_CALL(weir__kernel.fcntl(fd, F_SETFL, (void *)(intptr_t)(flags | O_DIRECT)));
    d->saved_flags = result < 0 ? -1 : (int)flags;
    d->flags_pid = (int)getpid();
    return (int)result;
}

void weir__direct_lend(weir_stream *s, bool lend)
{
    const struct weir__direct *d = weir__config(s)->direct;
    if (d->saved_flags < 0 || d->flags_pid != (int)getpid())
        return;
    int64_t flags = WEIR_CALL(weir__kernel.fcntl(weir__config(s)->fd, F_GETFL, NULL));
    if (flags >= 0)
        weir__kernel.fcntl(weir__config(s)->fd, F_SETFL, (void *)(intptr_t)(lend ? flags & ~O_DIRECT : flags | O_DIRECT));
}

int weir__direct_init(weir_stream *s)
{
    struct weir__config *config = weir__config(s);
    struct stat status;
    if (!config->regular && !config->block_device)
        return -EINVAL; /* on a pipe O_DIRECT selects packet mode */
    struct weir__direct *d = calloc(1, sizeof *d);
    if (!d)
        return -ENOMEM;
    config->direct = d; /* weir__direct_free frees it also after an error */
    d->cached_fd = d->saved_flags = -1;
    int result = (int)WEIR_CALL(weir__kernel.fstat(config->fd, &status));
    if (result == 0)
        result = set_direct_flag(config->fd, d);
    if (result == 0)
        result = query_alignment(config->fd, config->block_device, d);
    d->dev = status.st_dev;
    d->ino = status.st_ino;
    d->unit = d->block_align > weir__page ? d->block_align : weir__page;
    return result;
}

/* Requires that the descriptor is still open. */
void weir__direct_free(weir_stream *s)
{
    struct weir__config *config = weir__config(s);
    struct weir__direct *d = config->direct;
    weir__cached_close(s);
    if (d->saved_flags >= 0 && d->flags_pid == (int)getpid()) /* a forked child shares the flags with its parent */
        weir__kernel.fcntl(config->fd, F_SETFL, (void *)(intptr_t)d->saved_flags);
    if (d->bounce)
        weir__kernel.munmap(d->bounce, d->bounce_bytes);
    free(d);
    config->direct = NULL;
}

/* ---- buffers ---- */

size_t weir__direct_round_size(const struct weir__config *config, size_t bytes)
{
    return weir__round_up(bytes ? bytes : 1, config->direct->unit);
}

void weir__direct_set_capacity(struct weir__config *config) { config->direct->capacity = config->capacity; }

bool weir__direct_align_memory(const struct weir__config *config, char **memory, size_t *bytes)
{
    const struct weir__direct *d = config->direct;
    size_t over = (size_t)((uintptr_t)*memory % d->memory_align), skip = over ? d->memory_align - over : 0;
    if (*bytes < skip + d->unit)
        return false;
    *memory += skip;
    *bytes = weir__round_down(*bytes - skip, d->unit);
    return true;
}
