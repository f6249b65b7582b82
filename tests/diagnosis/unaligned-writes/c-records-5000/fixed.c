#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { RECORD = 5000, RECORDS = 4000, BLOCK = 4096 };

int main(void)
{
    static char batch[RECORD * BLOCK / 8]; /* 512 records, a whole number of blocks */
    size_t filled = 0;
    int volume = open("volume", O_WRONLY);

    if (volume < 0)
        return 1;
    for (int i = 0; i < RECORDS; i++) {
        memset(batch + filled, 'a' + i % 26, RECORD);
        filled += RECORD;
        if (filled == sizeof batch || i == RECORDS - 1) {
            if (write(volume, batch, filled) != (ssize_t)filled)
                return 1;
            filled = 0;
        }
    }
    return close(volume) != 0;
}
