/* Prints its result and checks that it was written. */
#include <stdio.h>

int main(void)
{
    printf("the result is 42\n");
    if (fclose(stdout) != 0) {
        perror("standard output");
        return 1;
    }
    return 0;
}
