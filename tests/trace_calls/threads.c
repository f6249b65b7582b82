/* Starts one thread after another. Each opens the file `out`, writes 100 times 10 bytes and ends. */
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

static void *write_some(void *unused)
{
    int fd = open("out", O_WRONLY | O_CREAT | O_APPEND, 0600);
    for (int i = 0; i < 100; i++)
        if (write(fd, "0123456789", 10) != 10)
            _exit(1);
    close(fd);
    return unused;
}

int main(void)
{
    for (;;) {
        pthread_t thread;
        if (pthread_create(&thread, 0, write_some, 0) != 0)
            return 1;
        pthread_join(thread, 0);
        usleep(20000);
    }
}
