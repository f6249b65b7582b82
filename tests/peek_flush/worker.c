/* worker.c: the main thread leaves a line in its stream and ends. Another one adds a line, writes a byte to standard error,
 * and waits for input in read(2). */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int main_thread_is_zombie(void)
{
    char line[512];
    FILE *stat = fopen("/proc/self/stat", "r");
    int is_zombie = stat && fgets(line, sizeof line, stat) && strstr(line, ") Z ");
    if (stat)
        fclose(stat);
    return is_zombie;
}

static void *work(void *unused)
{
    char byte;
    (void)unused;
    while (!main_thread_is_zombie())
        usleep(1000);
    printf("two\n");
    if (write(2, ".", 1) != 1 || read(0, &byte, 1) < 0)
        abort();
    printf("three\n");
    exit(0);
}

int main(void)
{
    pthread_t worker;
    printf("one\n");
    if (pthread_create(&worker, NULL, work, NULL))
        abort();
    pthread_exit(NULL);
}
