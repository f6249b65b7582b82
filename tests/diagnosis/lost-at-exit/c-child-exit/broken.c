#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    pid_t child = fork();

    if (child == 0) {
        long sum = 0;
        for (long i = 1; i <= 1000; i++)
            sum += i * i;
        printf("sum of squares: %ld\n", sum);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    return 0;
}
