#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static int write_all(int fd, const char *bytes, size_t left)
{
    while (left > 0) {
        ssize_t put = write(fd, bytes, left);
        if (put < 0 && errno != EAGAIN)
            return -1;
        if (put < 0)
            poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, -1);
        else
            bytes += put, left -= (size_t)put;
    }
    return 0;
}

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
    if (write_all(ends[1], message, sizeof message))
        perror("pipe");
    close(ends[1]);
    wait(NULL);
    return 0;
}
