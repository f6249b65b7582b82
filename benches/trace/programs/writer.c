/*
 * writer OUT STATE: writes 0, 1, 2 ... as 64-bit numbers, one write(2) each, without a pause, and keeps the longest
 * time between two writes. STATE is a file of 64-bit numbers that the benchmark shares: the benchmark sets [0] to end
 * the program; [1] is the window for which a gap that begins now counts; [2] is the number of records written;
 * [3 + window] is the longest gap of the window in nanoseconds.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { STOP, WINDOW, RECORDS, GAPS };

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

int main(int argc, char **argv)
{
    int out = argc == 3 ? open(argv[1], O_WRONLY | O_CREAT | O_TRUNC, 0600) : -1;
    int file = argc == 3 ? open(argv[2], O_RDWR) : -1;
    struct stat info;
    volatile uint64_t *state;
    uint64_t last, window, windows;

    if (out < 0 || file < 0 || fstat(file, &info) < 0)
        return 1;
    windows = (uint64_t)info.st_size / sizeof *state - GAPS;
    state = mmap(NULL, (size_t)info.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (state == MAP_FAILED)
        return 1;
    window = state[WINDOW];
    last = now_ns();
    for (uint64_t number = 0; !state[STOP]; number++) {
        /* Read before the clock: a stop that outlasts its window still counts for the one in which it began. */
        uint64_t next = state[WINDOW], then;

        if (window >= windows || write(out, &number, sizeof number) != (ssize_t)sizeof number)
            return 1;
        then = now_ns();
        if (then - last > state[GAPS + window])
            state[GAPS + window] = then - last;
        last = then;
        window = next;
        state[RECORDS] = number + 1;
    }
    return 0;
}
