/* Four threads log into one FILE. A fifth replaces the program by execve while they do. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static FILE *log_file;

static void *work(void *number)
{
    for (int i = 0;; i++) {
        fprintf(log_file, "worker %ld: step %d\n", (long)number, i);
        usleep(1000);
    }
    return 0;
}

static void *replace(void *unused)
{
    (void)unused;
    usleep(200000);
    execlp("true", "true", (char *)0);
    return 0;
}

int main(void)
{
    pthread_t thread;
    if (!(log_file = fopen("log", "w")))
        return 1;
    for (long i = 0; i < 4; i++)
        pthread_create(&thread, 0, work, (void *)i);
    pthread_create(&thread, 0, replace, 0);
    pause();
    return 1;
}
