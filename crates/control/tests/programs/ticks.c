/* Prints the time ten times a second into a large buffer. Between the lines it sleeps or computes. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(int count, char **words) {
    static char buffer[1 << 16];
    if (count < 3) return 2;
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    for (long number = atol(words[1]); number > 0; number--) {
        char line[64];
        snprintf(line, sizeof line, "at %.6f\n", now());
        for (char *at = line; *at; at++) putc_unlocked(*at, stdout);
        if (words[2][0] == 'c') {
            for (double end = now() + 0.1; now() < end;) continue;
        } else {
            usleep(100000);
        }
    }
    return 0;
}
