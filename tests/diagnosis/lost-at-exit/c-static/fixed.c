#include <stdio.h>

int main(void)
{
    for (int i = 1; i <= 30; i++)
        printf("%d squared is %d\n", i, i * i);
    return 0;
}
