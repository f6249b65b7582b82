#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

int main(void)
{
    uint32_t field, sum = 0;
    int table = open("table.bin", O_RDONLY);

    if (table < 0)
        return 1;
    for (off_t at = 0; pread(table, &field, sizeof field, at) == sizeof field; at += sizeof field)
        sum = sum * 31 + field;
    printf("%08x\n", sum);
    return 0;
}
