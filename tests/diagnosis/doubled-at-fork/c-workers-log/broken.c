#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    FILE *log = fopen("pool.log", "a");

    if (!log)
        return 1;
    for (int i = 0; i < 10; i++)
        fprintf(log, "setting %d = %d\n", i, i * 8);
    for (int i = 0; i < 4; i++) {
        if (fork() == 0) {
            fprintf(log, "worker %d ready\n", i);
            exit(0);
        }
    }
    while (wait(NULL) > 0)
        ;
    fprintf(log, "all workers ended\n");
    return fclose(log) != 0;
}
