/* count.c: writes with putc_unlocked, which keeps the write pointer in a register. */
#include <stdio.h>

int main(void)
{
    for (unsigned i = 0; i < 100u << 20; i++)
        putc_unlocked((int)('0' + i % 251 % 64), stdout);
    return 0;
}
