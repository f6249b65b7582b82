#include <stdio.h>
#include <unistd.h>

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int step = 1; step <= 4; step++) {
        printf("step %d of 4 done\n", step);
        usleep(400000);
    }
    return 0;
}
