/* Writes 100,000 bytes, each by a call of stdio. */
#include <stdio.h>

int main(void)
{
    for (int byte = 0; byte < 100000; byte++)
        if (fputc('x', stdout) == EOF)
            return 1;
    return fclose(stdout) != 0;
}
