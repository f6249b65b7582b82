#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(void)
{
    size_t size = 65536;
    char *block = malloc(size);
    int out = open("volume", O_WRONLY | O_CREAT | O_TRUNC | O_DIRECT, 0644);

    if (!block || out < 0)
        return 1;
    memset(block, 'v', size);
    for (int i = 0; i < 50; i++) {
        if (write(out, block, size) == (ssize_t)size)
            continue;
        fcntl(out, F_SETFL, fcntl(out, F_GETFL) & ~O_DIRECT);
        if (write(out, block, size) != (ssize_t)size)
            return 1;
        fcntl(out, F_SETFL, fcntl(out, F_GETFL) | O_DIRECT);
    }
    return close(out) != 0;
}
