/* fails full-disk: the results of the writes are not checked. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int give_up(void)
{
    fprintf(stderr, "dots: standard output: %s\n", strerror(errno));
    return 1;
}

static double number(const char *text)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || value < 0) {
        fprintf(stderr, "usage: dots [COUNT [SECONDS]]\n");
        exit(2);
    }
    return value;
}

static void wait_for(double seconds)
{
    struct timespec time = { (time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9) };
    while (nanosleep(&time, &time) == -1 && errno == EINTR)
        ;
}

int main(int argc, char **argv)
{
    double count = argc > 1 ? number(argv[1]) : 10, seconds = argc > 2 ? number(argv[2]) : 1;
    for (int dot = 0; dot < count; dot++) {
        putchar('.');
        fflush(stdout);
        wait_for(seconds);
    }
    putchar('\n');
    return count < 0 ? give_up() : 0;
}
