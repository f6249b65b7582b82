/* tail N FILE: prints the last N lines; reads the whole file. */
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    long wanted = argc > 2 ? atol(argv[1]) : 10, lines = 0;
    FILE *file = fopen(argv[argc - 1], "r");
    if (!file)
        return 1;
    static char buffer[1 << 16];
    setvbuf(file, buffer, _IOFBF, sizeof buffer);
    int before = '\n', c;
    while ((c = getc(file)) != EOF) {
        lines += before == '\n'; /* a line begins */
        before = c;
    }
    long skip = lines > wanted ? lines - wanted : 0;
    rewind(file);
    while (skip > 0 && (c = getc(file)) != EOF)
        skip -= c == '\n';
    if (wanted > 0)
        while ((c = getc(file)) != EOF)
            putchar(c);
    return 0;
}
