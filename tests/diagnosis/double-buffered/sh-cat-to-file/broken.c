#include <stdio.h>

int main(void)
{
    for (int i = 0; i < 3000000; i++)
        printf("%08d\n", i);
    return fflush(stdout) != 0;
}
