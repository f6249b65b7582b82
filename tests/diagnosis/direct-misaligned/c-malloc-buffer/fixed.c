#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(void)
{
    size_t size = 65536;
    char *block = aligned_alloc(4096, size);
    int out = open("volume", O_WRONLY | O_CREAT | O_TRUNC | O_DIRECT, 0644);

    if (!block || out < 0)
        return 1;
    memset(block, 'v', size);
    for (int i = 0; i < 50; i++)
        if (write(out, block, size) != (ssize_t)size)
            return 1;
    return close(out) != 0;
}
