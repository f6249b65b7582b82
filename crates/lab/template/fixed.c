/* A hundred numbered lines. The same program without the fault, and nothing else changed. */
#include <stdio.h>

int main(void)
{
    for (int line = 1; line <= 100; line++)
        printf("%d\n", line);
    return fclose(stdout) != 0;
}
