/* direct_read FILE LENGTH OFFSET ALIGNMENT: makes one read(2) with O_DIRECT into memory at an odd multiple of
 * ALIGNMENT. Without LENGTH: prints the alignments that the file needs, of offset and address. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The kernel's struct statx since 6.1; the C library's may be older. */
struct needs {
    uint32_t mask, before[37], memory, offset, after[24];
};

int main(int argc, char **argv)
{
    int fd = argc > 1 ? open(argv[1], O_RDONLY | O_DIRECT) : -1;
    if (fd < 0) {
        printf("%s\n", strerrorname_np(errno));
        return 1;
    }
    if (argc < 5) {
        struct needs needs = {0};
        if (syscall(SYS_statx, fd, "", AT_EMPTY_PATH, 0x2000 /* STATX_DIOALIGN */, &needs) != 0)
            return 1;
        printf("%u %u\n", needs.offset, needs.memory);
        return 0;
    }
    size_t length = strtoul(argv[2], NULL, 10), alignment = strtoul(argv[4], NULL, 10);
    char *memory = aligned_alloc(1 << 16, 1 << 20);
    ssize_t got = pread(fd, memory + alignment, length, (off_t)strtoul(argv[3], NULL, 10));
    if (got < 0)
        printf("%s\n", strerrorname_np(errno));
    else
        printf("%zd\n", got);
    return 0;
}
