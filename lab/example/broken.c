/* Prints a hundred numbered lines, unbuffered: the program with the fault. It may be a file broken.sh instead. */
#include <stdio.h>

int main(void)
{
    setvbuf(stdout, NULL, _IONBF, 0);
    for (int line = 1; line <= 100; line++)
        printf("%d\n", line);
    return 0;
}
