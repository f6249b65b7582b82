#include <stdio.h>

int main(void)
{
    FILE *f = fopen("log", "a");
    if (f == NULL)
        return 1;
    for (int number = 0; number < 100000; number++)
        fprintf(f, "record %d\n", number);
    return fclose(f) != 0;
}
