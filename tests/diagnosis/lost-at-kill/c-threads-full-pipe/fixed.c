/* Four threads print what the pipe can hold, and end before the program is killed. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static void *work(void *number)
{
    for (int i = 0; i < 300; i++)
        printf("worker %ld: step %d of very many\n", (long)number, i);
    return 0;
}

int main(void)
{
    pthread_t threads[4];
    for (long i = 0; i < 4; i++)
        pthread_create(&threads[i], 0, work, (void *)i);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], 0);
    fflush(stdout);
    kill(getpid(), SIGKILL);
    return 1;
}
