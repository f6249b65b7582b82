#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(void)
{
    char *block = aligned_alloc(4096, 4096);
    int in = open("data", O_RDONLY | O_DIRECT);
    int failed = 0;

    if (!block || in < 0)
        return 2;
    for (int i = 0; i < 20; i++)
        if (pread(in, block, 4096, 100 + i * 4096L) < 0)
            failed++;
    if (failed)
        fprintf(stderr, "%d of 20 blocks could not be read\n", failed);
    return failed > 0;
}
