#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(void)
{
    static char head[4096], value[8192];
    long found = 0;
    int values = open("values", O_RDONLY);

    if (values < 0)
        return 1;
    posix_fadvise(values, 0, 0, POSIX_FADV_RANDOM);
    srand(7);
    for (int i = 0; i < 400; i++) {
        if (lseek(values, rand() % 1600 * 12288L, SEEK_SET) < 0)
            return 1;
        if (read(values, head, sizeof head) != sizeof head || read(values, value, sizeof value) != sizeof value)
            return 1;
        found += head[0] + value[100] == 2 * '1';
    }
    printf("%ld\n", found);
    return 0;
}
