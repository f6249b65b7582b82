/* A monitor that writes each line at once, every 25 ms. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(void)
{
    for (int second = 0; second < 180; second++) {
        char line[80];
        int bytes = snprintf(line, sizeof line, "%06d temperature 21.5 pressure 1013 humidity 40 wind 3.2 NW clear sky ....\n", second);
        if (write(1, line, (size_t)bytes) < 0)
            return 1;
        usleep(25000);
    }
    return 0;
}
