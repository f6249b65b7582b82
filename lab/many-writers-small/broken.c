/* Ten processes write one line each to standard output. */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    for (int writer = 0; writer < 10; writer++)
        if (fork() == 0) {
            printf("writer %d of 10 was here\n", writer);
            return 0;
        }
    while (wait(NULL) > 0)
        ;
    return 0;
}
