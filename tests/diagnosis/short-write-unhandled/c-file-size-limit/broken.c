#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(void)
{
    size_t size = 1000000;
    char *image = malloc(size);
    int out = open("image.bin", O_WRONLY | O_CREAT | O_TRUNC, 0644);

    if (!image || out < 0)
        return 1;
    memset(image, 'x', size);
    if (write(out, image, size) < 0)
        return 1;
    return close(out) != 0;
}
