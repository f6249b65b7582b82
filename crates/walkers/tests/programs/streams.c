/* streams.c: leaves known bytes in streams of each mode, writes a byte to stderr, and waits. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static FILE *open_as(const char *name, int mode, size_t bytes)
{
    FILE *f = fopen(name, "w");
    if (!f || setvbuf(f, NULL, mode, bytes) != 0)
        abort();
    return f;
}

int main(int argc, char **argv)
{
    if (argc != 2 || chdir(argv[1]) != 0)
        return 2;
    FILE *in = fopen("input", "w+");
    fputs("first line\nsecond line\nthird", in);
    rewind(in);
    char line[100];
    if (!fgets(line, sizeof line, in))
        return 3;
    FILE *lines = open_as("line", _IOLBF, 4096), *none = open_as("none", _IONBF, 0);
    FILE *full = open_as("full", _IOFBF, 4096), *back = fopen("input", "r");
    fputs("a whole line\nthe rest", lines);
    fputs("at once", none);
    for (int i = 0; i < 300; i++)
        fputc('a' + i % 26, full);
    getc(back);
    ungetc('X', back);
    if (fileno(stdin) != 0 || fileno(stderr) != 2) /* a static program has only those that it uses */
        return 5;
    printf("decided\n"); /* musl looks for a terminal at the first write(2) */
    fflush(stdout);
    printf("in stdout");
    if (write(2, ".", 1) != 1)
        return 4;
    for (;;)
        pause();
}
