/* lines.c: prints as many numbered lines as the argument says, and sleeps now and then. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int main(int argc, char **argv)
{
    long lines = argc > 1 ? atol(argv[1]) : 0;
    for (long i = 0; i < lines; i++) {
        printf("line %ld\n", i);
        struct timespec time = {0, 200000};
        if (i % 40 == 0)
            nanosleep(&time, NULL);
    }
    return 0;
}
