/* fails truncate: keeps the end of a longer file. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int complain(const char *what)
{
    fprintf(stderr, "write_bytes: %s: %s\n", what, strerror(errno));
    return 1;
}

static long long number(const char *text)
{
    char *end;
    long long value = strtoll(text, &end, 10);
    return end == text || *end ? -1 : value;
}

int main(int argc, char **argv)
{
    long long left = argc > 3 ? number(argv[2]) : -1, size = argc > 3 ? number(argv[3]) : -1;
    if (argc > 5 || left < 0 || size <= 0) {
        fprintf(stderr, "usage: write_bytes FILE BYTES SIZE [sync]\n");
        return 2;
    }
    int fd = open(argv[1], O_WRONLY | O_CREAT | (argc == 5 ? O_SYNC : 0), 0666);
    char *block = malloc((size_t)size + 1);
    if (fd == -1 || !block)
        return complain(argv[1]);
    memset(block, 'x', (size_t)size);
    while (left > 0) {
        ssize_t put = write(fd, block, (size_t)(left < size ? left : size));
        if (put == -1)
            return complain(argv[1]);
        left -= put;
    }
    return close(fd) == -1 ? complain(argv[1]) : 0;
}
