#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum { BLOCK = 4096, PARTS = 3, ENTRIES = 1600, LOOKUPS = 500 };

int main(void)
{
    static char block[BLOCK];
    unsigned long long state = 42, sum = 0;
    int table = open("table", O_RDONLY);

    if (table < 0)
        return 1;
    posix_fadvise(table, 0, 0, POSIX_FADV_RANDOM);
    for (int i = 0; i < LOOKUPS; i++) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        off_t where = (off_t)((state >> 33) % ENTRIES) * PARTS * BLOCK;
        for (int part = 0; part < PARTS; part++) {
            if (pread(table, block, BLOCK, where + part * BLOCK) != BLOCK)
                return 1;
            sum += (unsigned char)block[17];
        }
    }
    printf("%llu\n", sum);
    return 0;
}
