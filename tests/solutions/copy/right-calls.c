/* fails nothing: read and write in blocks, with every result checked. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int complain(const char *what)
{
    fprintf(stderr, "copy: %s: %s\n", what, strerror(errno));
    return 1;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: copy FROM TO\n");
        return 2;
    }
    int from = open(argv[1], O_RDONLY);
    if (from == -1)
        return complain(argv[1]);
    int to = open(argv[2], O_WRONLY | O_CREAT, 0666);
    if (to == -1)
        return complain(argv[2]);
    struct stat a, b;
    if (fstat(from, &a) == -1 || fstat(to, &b) == -1)
        return complain("fstat");
    if (a.st_dev == b.st_dev && a.st_ino == b.st_ino) {
        fprintf(stderr, "%s and %s are the same file\n", argv[1], argv[2]);
        return 1;
    }
    if (S_ISREG(b.st_mode) && ftruncate(to, 0) == -1)
        return complain(argv[2]);
    char block[4096];
    ssize_t got;
    while ((got = read(from, block, sizeof block)) > 0) {
        for (ssize_t at = 0, put; at < got; at += put)
            if ((put = write(to, block + at, got - at)) == -1)
                return complain(argv[2]);
    }
    if (got == -1)
        return complain(argv[1]);
    if (close(to) == -1)
        return complain(argv[2]);
    return 0;
}
