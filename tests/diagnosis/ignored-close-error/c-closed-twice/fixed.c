#include <fcntl.h>
#include <stdio.h>

int main(void)
{
    for (int i = 0; i < 100; i++) {
        int fd = open("status.txt", O_WRONLY | O_CREAT | O_TRUNC, 0644);
        FILE *status = fdopen(fd, "w");
        if (!status)
            return 1;
        fprintf(status, "round %d\n", i);
        if (fclose(status))
            return 1;
    }
    return 0;
}
