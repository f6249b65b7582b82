/* slow N: writes N lines, ten a second, each with its time in nanoseconds of CLOCK_MONOTONIC. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int main(int argc, char **argv)
{
    long lines = argc > 1 ? atol(argv[1]) : 10;
    for (long i = 0; i < lines; i++) {
        struct timespec now, pause = {.tv_nsec = 100 * 1000 * 1000};
        nanosleep(&pause, NULL);
        clock_gettime(CLOCK_MONOTONIC, &now);
        printf("%lld\n", (long long)now.tv_sec * 1000000000 + now.tv_nsec);
    }
    /* The last line has to be brought out as the others were. */
    struct timespec rest = {.tv_nsec = 300 * 1000 * 1000};
    nanosleep(&rest, NULL);
    return fflush(stdout) != 0;
}
