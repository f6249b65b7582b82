#include <stdio.h>

int main(void)
{
    FILE *file = fopen("settings.tmp", "w");

    if (!file)
        return 1;
    for (int i = 0; i < 100; i++)
        fprintf(file, "option%d %d\n", i, i * i);
    if (fclose(file))
        return 1;
    return rename("settings.tmp", "settings") != 0;
}
