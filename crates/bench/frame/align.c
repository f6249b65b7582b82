/* The alignment that O_DIRECT requires: a raw statx(2) with STATX_DIOALIGN, because the C library's headers
 * may be older than the flag (Linux 6.1). */
#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "frame.h"

enum { DIOALIGN = 0x2000, STATX_SIZE = 0x100, STATX_ALIGN_AT = 0x98 };

/* The fields of the kernel's struct statx that are used here; the layout is the same on every architecture. */
struct statx_alignment {
    uint32_t mask;
    unsigned char unused[STATX_ALIGN_AT - sizeof(uint32_t)];
    uint32_t memory, offset;
    unsigned char rest[STATX_SIZE - STATX_ALIGN_AT - 2 * sizeof(uint32_t)];
};

int wb_direct_alignment(int fd, uint32_t *memory, uint32_t *offset)
{
    struct statx_alignment answer = {0};
    if (syscall(SYS_statx, fd, "", AT_EMPTY_PATH, DIOALIGN, &answer) != 0)
        return errno == ENOSYS || errno == EINVAL ? -EOPNOTSUPP : -errno;
    if (!(answer.mask & DIOALIGN) || answer.memory == 0 || answer.offset == 0)
        return -EOPNOTSUPP;
    *memory = answer.memory;
    *offset = answer.offset;
    return 0;
}
