/* Asks for a name and greets. */
#include <stdio.h>

int main(void)
{
    char name[64];
    printf("name? ");
    if (scanf("%63s", name) == 1)
        printf("hello, %s\n", name);
    return 0;
}
