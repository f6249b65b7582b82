/* waits.c: leaves bytes in stdout, writes a byte to stderr, blocks in the call that the first argument names until stdin
 * ends, and prints the rest. Exits with 9 if the call returns an unexpected result. With a second argument it leaves
 * that many bytes, in a buffer of 64 KiB. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

static int waits(const char *how)
{
    char byte;
    if (strcmp(how, "sleep") == 0) {
        struct timespec time = {1, 500000000};
        return nanosleep(&time, NULL) == 0;
    }
    if (strcmp(how, "poll") == 0) {
        struct pollfd end = {.fd = 0, .events = POLLIN};
        return poll(&end, 1, 60000) == 1;
    }
    if (strcmp(how, "epoll_wait") == 0) {
        struct epoll_event event = {.events = EPOLLIN};
        int set = epoll_create1(0);
        return epoll_ctl(set, EPOLL_CTL_ADD, 0, &event) == 0 && epoll_wait(set, &event, 1, 60000) == 1;
    }
    return read(0, &byte, 1) == 0;
}

int main(int argc, char **argv)
{
    static char buffer[65536];
    if (argc > 2) {
        setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
        for (int i = 0; i < atoi(argv[2]); i++)
            putchar('a' + i % 26);
    } else {
        printf("one\ntwo\nthree");
    }
    if (write(2, ".", 1) != 1)
        return 2;
    if (!waits(argc > 1 ? argv[1] : "read"))
        return 9;
    printf(" end\n");
    return 0;
}
