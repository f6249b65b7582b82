#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    char line[256];
    long long sum = 0;

    while (fgets(line, sizeof line, stdin))
        sum += atoll(line);
    printf("%lld\n", sum);
    return 0;
}
