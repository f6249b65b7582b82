#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int work(int number)
{
    char line[80];
    int log = open("events.log", O_WRONLY | O_CREAT | O_APPEND, 0644);

    if (log < 0)
        return 1;
    for (int i = 0; i < 1000; i++) {
        int length = snprintf(line, sizeof line, "worker %d %.*s %d\n", number, number * 3, "++++++", i);
        if (write(log, line, (size_t)length) != length)
            return 1;
        if (i % 10 == 0)
            usleep(200);
    }
    return close(log) != 0;
}

int main(void)
{
    for (int number = 1; number <= 2; number++)
        if (fork() == 0)
            exit(work(number));
    while (wait(NULL) > 0)
        ;
    return 0;
}
