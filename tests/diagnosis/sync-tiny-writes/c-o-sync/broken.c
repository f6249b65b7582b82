#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(void)
{
    char line[64];
    int journal = open("journal", O_WRONLY | O_CREAT | O_TRUNC | O_SYNC, 0644);

    if (journal < 0)
        return 1;
    for (int i = 0; i < 600; i++) {
        int length = snprintf(line, sizeof line, "%06d temperature 21.%02d\n", i, i % 100);
        if (write(journal, line, (size_t)length) != length)
            return 1;
    }
    return close(journal) != 0;
}
