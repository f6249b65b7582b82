#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int work(const char *name)
{
    FILE *log = fopen("events.log", "a");

    if (!log)
        return 1;
    for (int i = 0; i < 3000; i++) {
        fprintf(log, "process %s event %04d severity low\n", name, i);
        if (i % 20 == 0)
            usleep(500);
    }
    return fclose(log) != 0;
}

int main(void)
{
    if (fork() == 0)
        exit(work("one"));
    if (fork() == 0)
        exit(work("two"));
    while (wait(NULL) > 0)
        ;
    return 0;
}
