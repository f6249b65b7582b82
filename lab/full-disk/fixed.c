/* Prints its result. Exits with status 1 if it cannot be written. */
#include <stdio.h>

int main(void)
{
    printf("the result is 42\n");
    if (fclose(stdout) != 0) { /* writes the pending bytes */
        perror("standard output");
        return 1;
    }
    return 0;
}
