#include <stdio.h>

int main(void)
{
    FILE *report = fopen("/dev/full", "w");

    if (!report)
        return 1;
    for (int i = 0; i < 3000; i++)
        fprintf(report, "line %d of the report\n", i);
    fclose(report);
    return 0;
}
