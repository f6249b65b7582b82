#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void show_first_line(int log)
{
    char block[200];

    lseek(log, 0, SEEK_SET);
    ssize_t got = read(log, block, sizeof block);
    if (got > 0)
        printf("first: %.*s\n", (int)strcspn(block, "\n"), block);
}

int main(void)
{
    int log = open("service.log", O_RDWR | O_CREAT | O_TRUNC, 0644);

    for (int i = 0; i < 40; i++) {
        dprintf(log, "event %d of the service\n", i);
        if (i % 10 == 9) {
            pid_t child = fork();
            if (child == 0) {
                show_first_line(log);
                return 0;
            }
            waitpid(child, NULL, 0);
        }
    }
    return close(log) != 0;
}
