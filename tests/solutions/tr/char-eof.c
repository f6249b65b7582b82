/* fails output: in a char the byte 255 equals EOF. */
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
    char c;
    while ((c = getchar()) != EOF)
        if (putchar(c == argv[1][0] ? argv[2][0] : c) == EOF)
            return complain("standard output");
    if (ferror(stdin))
        return complain("standard input");
    if (fclose(stdout) == EOF)
        return complain("standard output");
    return 0;
}
