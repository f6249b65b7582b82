/* Shows progress: ten dots in two seconds. */
#include <stdio.h>
#include <unistd.h>

int main(void)
{
    for (int dot = 0; dot < 10; dot++) {
        usleep(200000); /* work */
        putchar('.');
        fflush(stdout);
    }
    return 0;
}
