/* count.c: counts with putc_unlocked, which keeps the place in the buffer in a register. */
#include <stdio.h>

int main(void)
{
    for (unsigned i = 0; i < 100u << 20; i++)
        putc_unlocked((int)('0' + i % 251 % 64), stdout);
    return 0;
}
