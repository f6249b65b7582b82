/* lines N: writes N short lines with printf. */
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    long lines = argc > 1 ? atol(argv[1]) : 10;
    for (long i = 0; i < lines; i++)
        printf("%07ld a line\n", i % 10000000);
    return fflush(stdout) != 0;
}
