#include <stdio.h>

int main(void)
{
    FILE *report = fopen("/dev/full", "w");

    if (!report)
        return 1;
    for (int i = 0; i < 3000; i++) {
        if (fprintf(report, "line %d of the report\n", i) < 0) {
            perror("report");
            return 1;
        }
    }
    if (fclose(report)) {
        perror("report");
        return 1;
    }
    return 0;
}
