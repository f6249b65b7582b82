/* putc S: writes a pseudo-random series with putc_unlocked for S seconds, then its length in eight bytes. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int main(int argc, char **argv)
{
    time_t end = time(NULL) + (argc > 1 ? atol(argv[1]) : 1);
    uint32_t state = 1;
    uint64_t bytes = 0;
    do {
        for (int i = 0; i < 1 << 20; i++, bytes++) {
            state = state * 1664525 + 1013904223;
            putc_unlocked((int)(state >> 24), stdout);
        }
    } while (time(NULL) < end);
    for (int i = 0; i < 8; i++)
        putc_unlocked((int)(bytes >> (8 * i) & 0xff), stdout);
    return fflush(stdout) != 0;
}
