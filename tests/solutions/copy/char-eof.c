/* fails same-bytes: in a char the byte 255 equals EOF. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static int complain(const char *what)
{
    fprintf(stderr, "copy: %s: %s\n", what, strerror(errno));
    return 1;
}

static int same(const char *one, const char *other)
{
    struct stat a, b;
    return stat(one, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: copy FROM TO\n");
        return 2;
    }
    if (same(argv[1], argv[2])) {
        fprintf(stderr, "copy: the same file\n");
        return 1;
    }
    FILE *from = fopen(argv[1], "rb");
    if (!from)
        return complain(argv[1]);
    FILE *to = fopen(argv[2], "wb");
    if (!to)
        return complain(argv[2]);
    char c;
    while ((c = getc(from)) != EOF)
        if (putc((unsigned char)c, to) == EOF)
            return complain(argv[2]);
    if (ferror(from))
        return complain(argv[1]);
    if (fclose(to) == EOF)
        return complain(argv[2]);
    return 0;
}
