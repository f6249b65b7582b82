#include <signal.h>
#include <stdio.h>

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    for (int i = 0; i < 200000; i++) {
        if (printf("number %d\n", i) < 0) {
            perror("output");
            return 1;
        }
    }
    return 0;
}
