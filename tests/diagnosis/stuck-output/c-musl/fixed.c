#include <stdio.h>
#include <unistd.h>

int main(void)
{
    for (int tick = 0; tick < 4; tick++) {
        printf("tick %d\n", tick);
        fflush(stdout);
        usleep(500000);
    }
    return 0;
}
