/* Writes 100 bytes one by one, then computes without system calls until it is killed. Meanwhile the first byte of the
   shared file argv[1] is 1. */
#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int count, char **words) {
    int fd = count > 1 ? open(words[1], O_RDWR) : -1;
    int flags = MAP_SHARED | (fd < 0 ? MAP_ANONYMOUS : 0);
    volatile char *computes = mmap(NULL, 4096, PROT_READ | PROT_WRITE, flags, fd, 0);
    close(fd);
    for (int i = 0; i < 100; i++)
        if (write(1, "x", 1) != 1) return 1;
    *computes = 1;
    for (volatile unsigned long i = 0;; i++) continue;
}
