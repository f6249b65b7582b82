#include <stdio.h>

int main(void)
{
    double x = 1;
    FILE *steps = fopen("steps.txt", "w");

    if (!steps)
        return 1;
    for (int i = 0; i < 40000; i++) {
        x = (x + 2 / x) / 2;
        fprintf(steps, "step %06d x = %.12f\n", i, x);
    }
    printf("40000 steps are in steps.txt\n");
    return fclose(steps) != 0;
}
