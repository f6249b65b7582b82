#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { RECORD = 5000, RECORDS = 4000 };

int main(void)
{
    char record[RECORD];
    int volume = open("volume", O_WRONLY);

    if (volume < 0)
        return 1;
    for (int i = 0; i < RECORDS; i++) {
        memset(record, 'a' + i % 26, sizeof record);
        if (pwrite(volume, record, sizeof record, i * (off_t)RECORD) != RECORD)
            return 1;
    }
    return close(volume) != 0;
}
