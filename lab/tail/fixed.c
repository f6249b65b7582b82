/* tail N FILE: prints the last N lines; reads blocks from the end. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK = 4096 };

/* Returns the offset at which the last `wanted` lines begin. */
static off_t start(int fd, off_t end, long wanted)
{
    char block[BLOCK];
    for (off_t at = end; at > 0;) {
        off_t from = at > BLOCK ? at - BLOCK : 0;
        ssize_t got = pread(fd, block, (size_t)(at - from), from);
        while (got-- > 0)
            if (block[got] == '\n' && from + got + 1 < end && --wanted == 0)
                return from + got + 1;
        at = from;
    }
    return 0;
}

int main(int argc, char **argv)
{
    long wanted = argc > 2 ? atol(argv[1]) : 10;
    int fd = open(argv[argc - 1], O_RDONLY);
    struct stat now;
    if (fd < 0 || fstat(fd, &now) != 0)
        return 1;
    char block[BLOCK];
    off_t at = wanted > 0 ? start(fd, now.st_size, wanted) : now.st_size;
    for (ssize_t got; (got = pread(fd, block, sizeof block, at)) > 0; at += got)
        if (write(STDOUT_FILENO, block, (size_t)got) != got)
            return 1;
    return 0;
}
