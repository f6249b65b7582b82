/* prints FILE|- [HOW]: writes a line to a stream, which stays pending without a flush, and then, by HOW, waits for a signal,
   kills itself (kill), waits for a message (receive) or for an event (eventfd, timerfd, signalfd, inotify), or receives 20 times
   with a timeout (timed). With copy it copies 50 bytes one by one instead, and SIGALRM kills it without another system call. */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* Waits for an event that does not come. */
static int wait_for_event(const char *kind)
{
    uint64_t number;
    sigset_t none;
    sigemptyset(&none);
    int fd = !strcmp(kind, "eventfd") ? eventfd(0, 0)
        : !strcmp(kind, "timerfd")    ? timerfd_create(CLOCK_MONOTONIC, 0)
        : !strcmp(kind, "signalfd")   ? signalfd(-1, &none, 0)
                                      : inotify_init();
    return read(fd, &number, sizeof number) != -1;
}

static int receive(int is_timed)
{
    int pair[2];
    char byte;
    struct timeval timeout = {0, 60000};
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
        return 1;
    if (!is_timed)
        return recv(pair[0], &byte, 1, 0) == 0;
    setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    for (int i = 0; i < 20; i++)
        if (recv(pair[0], &byte, 1, 0) != -1 || errno != EAGAIN)
            return 2;
    return 0;
}

static void copy(void)
{
    char byte;
    alarm(2);
    for (int i = 0; i < 50; i++)
        if (read(0, &byte, 1) != 1 || write(1, &byte, 1) != 1)
            return;
    for (;;)
        ;
}

int main(int argc, char **argv)
{
    static char buffer[4096];
    FILE *out = argc > 1 && strcmp(argv[1], "-") ? fopen(argv[1], "w") : stdout;
    alarm(90); /* ends a test that waits in vain */
    if (!out)
        return 1;
    if (argc > 2 && !strcmp(argv[2], "copy"))
        copy();
    setvbuf(out, buffer, _IOFBF, sizeof buffer);
    fputs("a line\n", out);
    if (argc > 2 && !strcmp(argv[2], "kill"))
        raise(SIGKILL);
    if (argc > 2 && (strstr(argv[2], "fd") || !strcmp(argv[2], "inotify")))
        return wait_for_event(argv[2]);
    if (argc > 2)
        return receive(!strcmp(argv[2], "timed"));
    for (;;)
        pause();
}
