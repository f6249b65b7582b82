/* fails compiles: a semicolon is missing. */
#include <stdio.h>

int main(void)
{
    puts("copied")
    return 0;
}
