#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(void)
{
    size_t size = 1000000, done = 0;
    char *image = malloc(size);
    int out = open("image.bin", O_WRONLY | O_CREAT | O_TRUNC, 0644);

    if (!image || out < 0)
        return 1;
    memset(image, 'x', size);
    signal(SIGXFSZ, SIG_IGN);
    while (done < size) {
        ssize_t put = write(out, image + done, size - done);
        if (put < 0) {
            perror("image.bin");
            return 1;
        }
        done += (size_t)put;
    }
    return close(out) != 0;
}
