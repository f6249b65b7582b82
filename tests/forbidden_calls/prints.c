/* prints FILE|- [kill|receive|timed|copy]: writes a line to a stream and waits for a signal or a message, kills itself, or receives 20
   times with a timeout. Without a flush the line stays pending. With copy it copies 50 bytes one by one, and
   SIGALRM kills it without another system call. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

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
    if (argc > 2)
        return receive(!strcmp(argv[2], "timed"));
    for (;;)
        pause();
}
