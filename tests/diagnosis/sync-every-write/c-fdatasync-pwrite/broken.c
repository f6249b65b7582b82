#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int main(void)
{
    char page[8192];
    int table = open("table.db", O_WRONLY | O_CREAT | O_TRUNC, 0644);

    if (table < 0)
        return 1;
    for (int i = 0; i < 300; i++) {
        memset(page, 'a' + i % 26, sizeof page);
        if (pwrite(table, page, sizeof page, i * (off_t)sizeof page) != sizeof page || fdatasync(table))
            return 1;
    }
    return close(table) != 0;
}
