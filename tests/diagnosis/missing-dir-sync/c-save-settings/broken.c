#include <stdio.h>
#include <unistd.h>

int main(void)
{
    FILE *file = fopen("settings.tmp", "w");

    if (!file)
        return 1;
    for (int i = 0; i < 100; i++)
        fprintf(file, "option%d %d\n", i, i * i);
    if (fflush(file) || fsync(fileno(file)) || fclose(file))
        return 1;
    return rename("settings.tmp", "settings") != 0;
}
