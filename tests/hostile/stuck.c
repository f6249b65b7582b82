/* stuck KIND: leaves "pending" in a stream over the file "out", prints "ready", and then
 * spins (KIND spin), sleeps in pause(2) (KIND sleep), waits in vfork(2) for a child that sleeps (KIND vfork), or flushes a second stream
 * to a full pipe (KIND full). */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    FILE *out = fopen("out", "w");
    if (argc != 2 || !out)
        return 1;
    fputs("pending", out);
    puts("ready");
    fflush(stdout);
    if (!strcmp(argv[1], "spin"))
        for (volatile unsigned long turns = 0;; turns++)
            ;
    if (!strcmp(argv[1], "vfork")) {
        pid_t parent = getpid();
        if (vfork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (getppid() == parent)
                pause();
            _exit(0);
        }
    }
    if (!strcmp(argv[1], "full")) {
        int ends[2];
        FILE *full = pipe(ends) == 0 ? fdopen(ends[1], "w") : NULL;
        char block[4096] = {0};
        if (!full || fcntl(ends[1], F_SETFL, O_NONBLOCK) != 0)
            return 1;
        while (write(ends[1], block, sizeof block) > 0)
            ;
        fcntl(ends[1], F_SETFL, 0);
        fputs("more", full);
        fflush(full);
    }
    pause();
    return 0;
}
