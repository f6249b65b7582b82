/* Prints a hundred numbered lines: the same program without the fault, and with no other change. */
#include <stdio.h>

int main(void)
{
    for (int line = 1; line <= 100; line++)
        printf("%d\n", line);
    return fclose(stdout) != 0;
}
