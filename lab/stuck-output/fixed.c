/* Prints a greeting, then waits. */
#include <stdio.h>
#include <unistd.h>

int main(void)
{
    printf("hi\n");
    fflush(stdout);
    sleep(2);
    return 0;
}
