/* tr a w with stdio: what tr2u is once it is fixed. */
#include <stdio.h>

int main(void)
{
    int byte;

    while ((byte = getchar()) != EOF)
        if (putchar(byte == 'a' ? 'w' : byte) == EOF)
            return 1;
    return ferror(stdin) || fclose(stdout) != 0;
}
