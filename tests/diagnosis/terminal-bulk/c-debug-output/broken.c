#include <stdio.h>

int main(void)
{
    double x = 1;

    for (int i = 0; i < 40000; i++) {
        x = (x + 2 / x) / 2;
        printf("step %06d x = %.12f\n", i, x);
    }
    return 0;
}
