/* tr a w, with stdio (tr2b). */
#include <stdio.h>

int main(void)
{
    for (int byte; (byte = getchar()) != EOF;)
        if (putchar(byte == 'a' ? 'w' : byte) == EOF)
            return 1;
    return fclose(stdout) != 0;
}
