/* Prints a line and waits. */
#include <stdio.h>
#include <unistd.h>

int main(void)
{
    printf("line\n");
    sleep(60);
    return 0;
}
