#include <signal.h>
#include <stdio.h>

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    for (int i = 0; i < 200000; i++)
        printf("number %d\n", i);
    return 0;
}
