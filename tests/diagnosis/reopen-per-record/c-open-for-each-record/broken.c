#include <stdio.h>

static void record(const char *path, int number)
{
    FILE *f = fopen(path, "a");
    if (f == NULL)
        return;
    fprintf(f, "record %d\n", number);
    fclose(f);
}

int main(void)
{
    for (int number = 0; number < 100000; number++)
        record("log", number);
    return 0;
}
