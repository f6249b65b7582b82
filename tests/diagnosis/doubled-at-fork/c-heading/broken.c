#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    printf("Report of two processes\n");
    pid_t child = fork();
    if (child == 0) {
        printf("child: done\n");
        exit(0);
    }
    waitpid(child, NULL, 0);
    printf("parent: done\n");
    return 0;
}
