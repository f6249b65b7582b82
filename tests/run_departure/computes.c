/* Writes to stdout, and then computes for some seconds without a system call: the time comes from the vDSO. The file "begun" shows
   that the first bytes are in the buffer. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static volatile unsigned long sum;

static void compute(double seconds) {
    double end = now() + seconds;
    while (now() < end)
        for (int i = 0; i < 100000; i++) sum += i;
}

int main(int count, char **words) {
    const char *way = count > 1 ? words[1] : "";
    fputs("begin\n", stdout);
    open("begun", O_CREAT | O_WRONLY, 0666);
    if (!strcmp(way, "long")) {
        compute(60);
    } else if (!strcmp(way, "puts")) {
        for (int i = 0; i < 1000; i++) {
            compute(0.004);
            putc_unlocked('a' + i % 26, stdout);
        }
    } else {
        compute(4);
    }
    fputs("\nend\n", stdout);
    return 0;
}
