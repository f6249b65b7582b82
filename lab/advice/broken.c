/* Writes 256 pages, drops them from the cache, and prints how many remain there. Then reads one page with each advice
 * and prints how many pages the kernel loaded. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGES = 256, PAGE = 4096 };

static int cached(int fd)
{
    unsigned char there[PAGES];
    void *at = mmap(NULL, PAGES * PAGE, PROT_READ, MAP_SHARED, fd, 0);
    int count = 0;
    if (at == MAP_FAILED || mincore(at, PAGES * PAGE, there) != 0)
        exit(1);
    for (int page = 0; page < PAGES; page++)
        count += there[page] & 1;
    munmap(at, PAGES * PAGE);
    return count;
}

static int after_one(int fd, int advice)
{
    char page[PAGE];
    fsync(fd);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    posix_fadvise(fd, 0, 0, advice);
    if (pread(fd, page, sizeof page, 0) != sizeof page)
        exit(1);
    usleep(50000); /* read-ahead arrives a little later */
    return cached(fd);
}

int main(void)
{
    static char block[PAGES * PAGE];
    int fd = open("pages", O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (write(fd, block, sizeof block) != sizeof block)
        return 1;
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    printf("%d ", cached(fd));
    printf("%d ", after_one(fd, POSIX_FADV_NORMAL));
    printf("%d\n", after_one(fd, POSIX_FADV_RANDOM));
    return 0;
}
