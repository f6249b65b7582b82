/*
 * preadv2(2) and pwritev2(2) as raw system calls, because not every C library has them, and flags that are
 * newer than many headers. Offset -1 is the file position.
 */
#ifndef WEIR_BENCH_RAW_H
#define WEIR_BENCH_RAW_H

#include <errno.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "loops.h"

#ifndef RWF_DSYNC
#define RWF_DSYNC 0x00000002
#endif
#ifndef RWF_DONTCACHE
#define RWF_DONTCACHE 0x00000080 /* Linux 6.14 */
#endif

/* The system call has the offset in two arguments, pos_l and pos_h; a 64-bit kernel takes all 64 bits from pos_l. */
WB_INLINE ssize_t wb_preadv2(int fd, const struct iovec *vector, int count, int64_t offset, int flags)
{
    return syscall(SYS_preadv2, fd, vector, count, (long)offset, (long)(offset >> 32), flags);
}

WB_INLINE ssize_t wb_pwritev2(int fd, const struct iovec *vector, int count, int64_t offset, int flags)
{
    return syscall(SYS_pwritev2, fd, vector, count, (long)offset, (long)(offset >> 32), flags);
}

WB_INLINE const char *wb_flag_name(int flags)
{
    return flags & RWF_DONTCACHE ? "RWF_DONTCACHE" : "RWF_DSYNC";
}

/* Writes all bytes with pwritev2(2) and flags; offset -1 is the file position. Returns 0, or -1 after wb_fail, or after
 * wb_cannot if the kernel does not have the flag. */
WB_INLINE int wb_put_flagged(struct wb_io *io, const unsigned char *from, size_t bytes, int64_t offset,
                             int flags)
{
    bool is_first = io->puts == 0; /* also after EINTR */
    while (bytes > 0) {
        const struct iovec vector = {(void *)(uintptr_t)from, bytes};
        const ssize_t written = wb_pwritev2(io->out, &vector, 1, offset, flags);
        io->puts++;
        if (written > 0) {
            from += written;
            bytes -= (size_t)written;
            is_first = false;
            offset += offset < 0 ? 0 : written;
        } else if (written == 0 || errno != EINTR) {
            return wb_refused(io->run, is_first ? wb_flag_name(flags) : NULL, "pwritev2",
                              io->run->job->out_path, written == 0 ? EIO : errno);
        }
    }
    return 0;
}

#endif
