#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int read_line(int fd, char *line, int size)
{
    int n = 0;
    char c;

    while (n < size - 1 && read(fd, &c, 1) == 1) {
        line[n++] = c;
        if (c == '\n')
            break;
    }
    line[n] = '\0';
    return n;
}

int main(void)
{
    char line[256];
    long long sum = 0;

    while (read_line(0, line, sizeof line) > 0)
        sum += atoll(line);
    printf("%lld\n", sum);
    return 0;
}
