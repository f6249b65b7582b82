/* press WORD COUNT: asks the machine outside for presses of the key, and measures when their records come from weir log on
 * standard input. Prints `@@delay WORD FROM_EDGE_US FROM_PRESS_US` for each: the time since the kernel's stamp of the edge,
 * and since before the press was asked for. Both are of this machine's clock. A press whose record does not come, because
 * polling missed it, is `@@missed WORD`; there may be as many of these. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static long long now_us(void)
{
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    return time.tv_sec * 1000000LL + time.tv_nsec / 1000;
}

/* Returns the time of a stamp in seconds with a fraction. */
static long long stamp_us(const char *text)
{
    char fraction[7] = "000000";
    char *point;
    long long seconds = strtoll(text, &point, 10);
    if (*point == '.')
        for (int i = 0; i < 6 && point[i + 1] >= '0' && point[i + 1] <= '9'; i++)
            fraction[i] = point[i + 1];
    return seconds * 1000000 + atoll(fraction);
}

/* Reads records until one has this value. Returns the time of its arrival, or 0 after two seconds without a record. */
static long long wait_for(char value, long long *stamp)
{
    static char line[256];
    struct pollfd ready = {.fd = 0, .events = POLLIN};
    for (;;) {
        if (poll(&ready, 1, 2000) == 0)
            return 0;
        if (!fgets(line, sizeof line, stdin))
            break;
        long long at = now_us();
        size_t length = strcspn(line, "\n");
        *stamp = stamp_us(line);
        if (length && line[length - 1] == value)
            return at;
    }
    puts("@@error the log has ended");
    exit(1);
}

int main(int argc, char **argv)
{
    int count = argc > 2 ? atoi(argv[2]) : 20;
    long long stamp;
    setvbuf(stdout, NULL, _IOLBF, 0);
    setvbuf(stdin, NULL, _IONBF, 0); /* poll(2) sees every byte */
    sleep(3); /* weir log opens the line */
    for (int i = 0, missed = 0; i < count && missed < count; i++) {
        usleep(400000 + i * 7000); /* at other moments between two polls */
        long long asked = now_us();
        puts("@@press");
        long long at = wait_for('1', &stamp);
        if (!at) {
            printf("@@missed %s\n", argv[1]);
            missed++, i--;
            continue;
        }
        printf("@@delay %s %lld %lld\n", argv[1], at - stamp, at - asked);
        wait_for('0', &stamp);
    }
    return 0;
}
