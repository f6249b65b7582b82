/* Four threads log into one FILE. They end, and the FILE is flushed, before the program is replaced by execve. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static FILE *log_file;

static void *work(void *number)
{
    for (int i = 0; i < 150; i++) {
        fprintf(log_file, "worker %ld: step %d\n", (long)number, i);
        usleep(1000);
    }
    return 0;
}

int main(void)
{
    pthread_t threads[4];
    if (!(log_file = fopen("log", "w")))
        return 1;
    for (long i = 0; i < 4; i++)
        pthread_create(&threads[i], 0, work, (void *)i);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], 0);
    fflush(NULL);
    execlp("true", "true", (char *)0);
    return 1;
}
