/* tr a w with stdio: tr2u, fixed. */
#include <stdio.h>

int main(void)
{
    int byte;

    while ((byte = getchar()) != EOF)
        if (putchar(byte == 'a' ? 'w' : byte) == EOF)
            return 1;
    return ferror(stdin) || fclose(stdout) != 0;
}
