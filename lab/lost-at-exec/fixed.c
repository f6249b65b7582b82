/* Announces the next program and executes it. */
#include <stdio.h>
#include <unistd.h>

int main(void)
{
    printf("starting echo\n");
    fflush(NULL);
    execlp("echo", "echo", "this is echo", (char *)NULL);
    perror("echo");
    return 1;
}
