/* Forks with bytes pending for a full pipe. The child and the parent both flush at their exits. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    /* Fills the pipe. */
    static char page[4096];
    memset(page, 'x', sizeof page - 1);
    page[sizeof page - 1] = '\n';
    int flags = fcntl(1, F_GETFL);
    fcntl(1, F_SETFL, flags | O_NONBLOCK);
    while (write(1, page, sizeof page) > 0)
        ;
    fcntl(1, F_SETFL, flags);
    static char buffer[1 << 16];
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    for (int number = 0; number < 1000; number++)
        printf("pending %d\n", number);
    if (fork() == 0)
        return 0;
    return wait(NULL) < 0;
}
