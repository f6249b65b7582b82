#include <stdio.h>
#include <unistd.h>

int main(void)
{
    for (int step = 1; step <= 4; step++) {
        printf("step %d of 4 done\n", step);
        usleep(400000);
    }
    return 0;
}
