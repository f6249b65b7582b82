#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    static char message[300000];
    int ends[2];

    if (pipe2(ends, O_NONBLOCK))
        return 1;
    if (fork() == 0) {
        dup2(ends[0], 0);
        fcntl(0, F_SETFL, 0);
        close(ends[0]);
        close(ends[1]);
        usleep(50000); /* a reader that is busy */
        execlp("wc", "wc", "-c", (char *)NULL);
        _exit(127);
    }
    close(ends[0]);
    if (write(ends[1], message, sizeof message) < 0)
        perror("pipe");
    close(ends[1]);
    wait(NULL);
    return 0;
}
