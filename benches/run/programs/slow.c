/* slow N: writes N lines, ten a second, each with its time in nanoseconds of CLOCK_MONOTONIC. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int main(int argc, char **argv)
{
    long lines = argc > 1 ? atol(argv[1]) : 10;
    for (long i = 0; i < lines; i++) {
        struct timespec now, interval = {.tv_nsec = 100 * 1000 * 1000};
        nanosleep(&interval, NULL);
        clock_gettime(CLOCK_MONOTONIC, &now);
        printf("%lld\n", (long long)now.tv_sec * 1000000000 + now.tv_nsec);
    }
    /* Sleeps before the exit, so that weir writes the last line too. */
    struct timespec rest = {.tv_nsec = 300 * 1000 * 1000};
    nanosleep(&rest, NULL);
    return fflush(stdout) != 0;
}
