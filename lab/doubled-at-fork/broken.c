/* One line before fork, one line of each process after it. */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    printf("buffered in %d\n", (int)getpid());
    pid_t child = fork();
    printf("after in %d\n", (int)getpid());
    if (child > 0)
        waitpid(child, NULL, 0);
    return 0;
}
