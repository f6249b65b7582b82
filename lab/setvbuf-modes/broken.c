/* Prints 10,000 lines of 10 bytes to stdout in the mode of the argument. */
#include <stdio.h>
#include <string.h>

static char own[65536];

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "full";
    if (strcmp(mode, "none") == 0)
        setvbuf(stdout, NULL, _IONBF, 0);
    else if (strcmp(mode, "line") == 0)
        setvbuf(stdout, NULL, _IOLBF, 0);
    else
        setvbuf(stdout, strcmp(mode, "own") == 0 ? own : NULL, _IOFBF, sizeof own);
    for (int line = 0; line < 10000; line++)
        printf("line %04d\n", line);
    return 0;
}
