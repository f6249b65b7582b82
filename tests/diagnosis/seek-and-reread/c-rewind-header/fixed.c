#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    char line[40];
    long sum = 0;
    FILE *log = fopen("log", "r");

    if (!log || !fgets(line, sizeof line, log))
        return 1;
    long count = atol(line) * 250000;
    for (long i = 1; i < count; i++) {
        if (!fgets(line, sizeof line, log))
            return 1;
        sum += atol(line);
    }
    printf("%ld\n", sum);
    return 0;
}
