#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int main(void)
{
    char block[4096];
    int log = open("app.log", O_RDONLY);

    for (;;) {
        ssize_t got = read(log, block, sizeof block - 1);
        if (got < 0)
            return 1;
        if (got == 0)
            continue;
        block[got] = '\0';
        if (write(1, block, (size_t)got) != got)
            return 1;
        if (strstr(block, "END"))
            return 0;
    }
}
