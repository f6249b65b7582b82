/* names: has escape sequences in its name and in the name of its output file, to which bytes are pending. Prints "ready". */
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(void)
{
    prctl(PR_SET_NAME, "a\033[31m\r\033]0;\a");
    FILE *stream = fopen("o\033[2J\rp", "w");
    if (!stream)
        return 1;
    fputs("pending", stream);
    puts("ready");
    fflush(stdout);
    getchar();
    _exit(0);
}
