#include <stdio.h>
#include <stdlib.h>

static void fatal(const char *what)
{
    fprintf(stderr, "fatal: %s", what);
    exit(2);
}

int main(void)
{
    char line[100];
    FILE *report = fopen("report.txt", "w");

    if (!report)
        return 1;
    while (fgets(line, sizeof line, stdin)) {
        long value = atol(line);
        if (value == 0)
            fatal(line);
        fprintf(report, "%ld squared is %ld\n", value, value * value);
    }
    return fclose(report) != 0;
}
