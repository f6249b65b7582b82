/* A thread closes a socket, which takes a second, because the peer does not read what was sent. Meanwhile another thread gets
 * the socket's number by the call that the argument names, and writes to it: to the file "new", by open(2) or fcntl(2), or to a socket,
 * by socketpair(2). Prints the bytes that were sent to the first socket. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            perror(#condition);                                                                                        \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static char data[100];

static void *close_slowly(void *fd)
{
    close(*(int *)fd);
    return 0;
}

static void write_some(int fd)
{
    for (int i = 0; i < 20; i++)
        CHECK(write(fd, data, sizeof data) == sizeof data);
}

/* Makes a descriptor of the number `fd`, which is the lowest free one. `file`: descriptor of the file "new". */
static void reuse(int fd, const char *call, int file)
{
    int pair[2];
    if (strcmp(call, "socketpair") == 0)
        CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 && pair[0] == fd);
    else if (strcmp(call, "fcntl") == 0)
        CHECK(fcntl(file, F_DUPFD, fd) == fd);
    else
        CHECK(open("new", O_WRONLY) == fd);
}

int main(int count, char **words)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;
    struct linger linger = {1, 1};
    pthread_t closer;
    long sent = 0;
    CHECK(count == 2);
    int file = open("new", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(bind(listener, (void *)&address, bytes) == 0 && listen(listener, 1) == 0);
    CHECK(getsockname(listener, (void *)&address, &bytes) == 0);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(connect(fd, (void *)&address, bytes) == 0 && accept(listener, 0, 0) >= 0);
    CHECK(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger) == 0);
    for (long moved; (moved = send(fd, data, sizeof data, MSG_DONTWAIT)) > 0;)
        sent += moved;
    CHECK(errno == EAGAIN);
    CHECK(pthread_create(&closer, 0, close_slowly, &fd) == 0);
    while (fcntl(fd, F_GETFD) >= 0)
        usleep(1000);
    reuse(fd, words[1], file);
    write_some(fd);
    pthread_join(closer, 0);
    write_some(fd);
    printf("%ld\n", sent);
    return 0;
}
