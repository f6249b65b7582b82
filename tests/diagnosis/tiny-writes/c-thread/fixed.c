#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <unistd.h>

static void *record(void *file)
{
    uint16_t sample = 0, batch[32768];
    size_t filled = 0;

    for (int i = 0; i < 500000; i++) {
        sample = (uint16_t)(sample * 31 + 7);
        batch[filled++] = sample;
        if (filled == 32768 || i == 499999) {
            if (write(*(int *)file, batch, filled * 2) != (ssize_t)filled * 2)
                return file;
            filled = 0;
        }
    }
    return NULL;
}

int main(void)
{
    pthread_t thread;
    void *failed;
    int file = open("samples.raw", O_WRONLY | O_CREAT | O_TRUNC, 0644);

    if (file < 0 || pthread_create(&thread, NULL, record, &file))
        return 1;
    pthread_join(thread, &failed);
    return failed || close(file);
}
