/* held.c: a thread holds the lock of stdout, which has pending bytes, until stdin ends. Then the lock is free, and the
 * bytes are pending until the program is killed. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static void *hold(void *unused)
{
    char byte;
    flockfile(stdout);
    fputs("held", stdout);
    if (write(2, ".", 1) != 1 || read(0, &byte, 1) != 0)
        _exit(9);
    funlockfile(stdout);
    return write(2, ".", 1) == 1 ? NULL : unused;
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, hold, NULL);
    pthread_join(thread, NULL);
    for (;;)
        pause();
}
