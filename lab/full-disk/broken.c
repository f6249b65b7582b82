/* Prints its result. */
#include <stdio.h>

int main(void)
{
    printf("the result is 42\n");
    return 0;
}
