/* fails unreadable: treats a read error as the end. */
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
    for (int c; (c = getchar()) != EOF;)
        if (putchar(c == (unsigned char)argv[1][0] ? argv[2][0] : c) == EOF)
            return complain("standard output");
    if (fclose(stdout) == EOF)
        return complain("standard output");
    return 0;
}
