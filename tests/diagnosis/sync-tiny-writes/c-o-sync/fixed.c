#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(void)
{
    static char batch[65536];
    size_t filled = 0;
    int journal = open("journal", O_WRONLY | O_CREAT | O_TRUNC | O_SYNC, 0644);

    if (journal < 0)
        return 1;
    for (int i = 0; i < 600; i++)
        filled += (size_t)snprintf(batch + filled, sizeof batch - filled, "%06d temperature 21.%02d\n", i, i % 100);
    if (write(journal, batch, filled) != (ssize_t)filled)
        return 1;
    return close(journal) != 0;
}
