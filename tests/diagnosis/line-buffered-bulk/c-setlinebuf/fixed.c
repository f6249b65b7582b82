#include <stdio.h>

int main(void)
{
    for (int i = 0; i < 400000; i++)
        printf("%d,%d,%d\n", i, i * 3 % 1001, i * 7 % 877);
    return fflush(stdout) != 0;
}
