#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static void work(void)
{
    FILE *log = fopen("worker.log", "w");

    if (!log)
        _exit(1);
    setvbuf(log, NULL, _IOLBF, 0);
    for (int job = 1;; job++) {
        fprintf(log, "job %d finished\n", job);
        usleep(10000);
    }
}

int main(void)
{
    pid_t worker = fork();

    if (worker == 0)
        work();
    usleep(500000);
    kill(worker, SIGKILL);
    waitpid(worker, NULL, 0);
    return 0;
}
