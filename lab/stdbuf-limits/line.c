/* Prints a line and waits; given an argument, sets its own buffer. */
#include <stdio.h>
#include <unistd.h>

static char own[65536];

int main(int argc, char **argv)
{
    (void)argv;
    if (argc > 1)
        setvbuf(stdout, own, _IOFBF, sizeof own);
    printf("line\n");
    sleep(3);
    return 0;
}
