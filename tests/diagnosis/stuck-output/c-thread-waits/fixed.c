/* A worker prints that it is ready, flushes, and waits. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static void *work(void *unused)
{
    printf("ready, waiting for work\n");
    fflush(stdout);
    sleep(2);
    return unused;
}

int main(void)
{
    pthread_t worker;

    if (pthread_create(&worker, NULL, work, NULL))
        return 1;
    pthread_join(worker, NULL);
    return 0;
}
