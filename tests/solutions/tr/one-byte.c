/* fails calls: a read and a write for every byte. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int complain(const char *what)
{
    fprintf(stderr, "tr: %s: %s\n", what, strerror(errno));
    return 1;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: tr A B\n");
        return 2;
    }
    char block[1];
    ssize_t got;
    while ((got = read(STDIN_FILENO, block, sizeof block)) > 0) {
        for (ssize_t at = 0; at < got; at++)
            if (block[at] == argv[1][0])
                block[at] = argv[2][0];
        for (ssize_t at = 0, put; at < got; at += put)
            if ((put = write(STDOUT_FILENO, block + at, (size_t)(got - at))) == -1)
                return complain("standard output");
    }
    return got == -1 ? complain("standard input") : 0;
}
