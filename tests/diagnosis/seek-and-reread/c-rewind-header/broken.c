#include <stdio.h>
#include <stdlib.h>

static long header_count(FILE *log)
{
    char line[40];

    rewind(log);
    return fgets(line, sizeof line, log) ? atol(line) * 250000 : 0;
}

int main(void)
{
    char line[40];
    long sum = 0;
    FILE *log = fopen("log", "r");

    if (!log)
        return 1;
    for (long i = 1; i < header_count(log); i++) {
        fseek(log, i * 32, SEEK_SET);
        if (!fgets(line, sizeof line, log))
            return 1;
        sum += atol(line);
    }
    printf("%ld\n", sum);
    return 0;
}
