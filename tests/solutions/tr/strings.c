/* fails output: fgets and fputs treat the bytes as strings, which end at a NUL. */
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
    char line[4096];
    while (fgets(line, sizeof line, stdin)) {
        for (char *c = line; *c; c++)
            if (*c == argv[1][0])
                *c = argv[2][0];
        if (fputs(line, stdout) == EOF)
            return complain("standard output");
    }
    if (ferror(stdin))
        return complain("standard input");
    if (fclose(stdout) == EOF)
        return complain("standard output");
    return 0;
}
