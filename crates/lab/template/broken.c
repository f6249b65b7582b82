/* A hundred numbered lines, unbuffered. The program that shows the fault; a file broken.sh would do as well. */
#include <stdio.h>

int main(void)
{
    setvbuf(stdout, NULL, _IONBF, 0);
    for (int line = 1; line <= 100; line++)
        printf("%d\n", line);
    return 0;
}
