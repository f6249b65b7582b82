/* A monitor that reads nothing: a line every 25 ms goes into a buffer of its own, which is written when it is full. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(void)
{
    static char block[4096];
    size_t filled = 0;
    for (int second = 0; second < 180; second++) {
        char line[80];
        int bytes = snprintf(line, sizeof line, "%06d temperature 21.5 pressure 1013 humidity 40 wind 3.2 NW clear sky ....\n", second);
        size_t part = sizeof block - filled < (size_t)bytes ? sizeof block - filled : (size_t)bytes;
        memcpy(block + filled, line, part);
        filled += part;
        if (filled == sizeof block) {
            if (write(1, block, filled) < 0)
                return 1;
            filled = (size_t)bytes - part;
            memcpy(block, line + part, filled);
        }
        usleep(25000);
    }
    return write(1, block, filled) < 0;
}
