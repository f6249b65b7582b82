/* Four threads print more than the reader of the pipe takes, so that one waits in write(2) when the program is killed. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static void *work(void *number)
{
    for (int i = 0;; i++)
        printf("worker %ld: step %d of very many\n", (long)number, i);
    return 0;
}

int main(void)
{
    pthread_t thread;
    for (long i = 0; i < 4; i++)
        pthread_create(&thread, 0, work, (void *)i);
    usleep(300000);
    kill(getpid(), SIGKILL);
    return 1;
}
