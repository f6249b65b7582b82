/* stuck KIND: leaves "pending" in a stream over the file "out", prints "ready", and then
 * spins (KIND spin), sleeps in pause(2) (KIND sleep), or waits in vfork(2) for a child that sleeps (KIND vfork). */
#define _GNU_SOURCE
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
    pause();
    return 0;
}
