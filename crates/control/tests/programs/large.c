/* Fills the 40 MiB buffers of two streams in turns, more in all than weir reads of one process, and computes in between, so
   that weir writes ahead. The arguments are the names of the files. */
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { BUFFER = 40 << 20, PART = 12 << 20 };

static void compute(double seconds) {
    struct timespec now, end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_nsec += (long)(seconds * 1e9);
    end.tv_sec += end.tv_nsec / 1000000000;
    end.tv_nsec %= 1000000000;
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while (now.tv_sec < end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec < end.tv_nsec));
}

int main(int count, char **words) {
    static char buffers[2][BUFFER];
    FILE *files[2];
    if (count < 3) return 2;
    for (int which = 0; which < 2; which++) {
        files[which] = fopen(words[1 + which], "w");
        if (!files[which] || setvbuf(files[which], buffers[which], _IOFBF, BUFFER)) return 3;
    }
    for (int part = 0; part < 3; part++)
        for (int which = 0; which < 2; which++) {
            for (int number = 0; number < PART / 16; number++)
                if (fprintf(files[which], "%c %d %012d\n", 'a' + which, part, number) < 0) return 4;
            compute(0.3);
        }
    return fclose(files[0]) != 0 || fclose(files[1]) != 0;
}
