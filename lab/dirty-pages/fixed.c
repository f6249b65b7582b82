/* Writes 1 MiB and prints how many of its pages are dirty, at once and a second later (cachestat(2), Linux 6.5). */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_cachestat
#define SYS_cachestat 451
#endif

static long dirty(int fd)
{
    struct { uint64_t offset, length; } all = {0, 0};
    struct { uint64_t cached, dirty, writeback, evicted, recently; } pages;
    return syscall(SYS_cachestat, fd, &all, &pages, 0) == 0 ? (long)(pages.dirty + pages.writeback) : -1;
}

int main(void)
{
    static char block[1 << 20];
    int fd = open("megabyte", O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (write(fd, block, sizeof block) != sizeof block)
        return 1;
    fsync(fd);
    printf("%ld ", dirty(fd));
    sleep(1);
    printf("%ld\n", dirty(fd));
    return 0;
}
