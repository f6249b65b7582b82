/* drip LINES MILLISECONDS BYTES: writes a line of about BYTES bytes and sleeps, LINES times, like a sensor. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    int lines = atoi(argv[1]), bytes = atoi(argv[3]);
    char line[1024];
    if (bytes < 20 || bytes > 1000)
        return 2;
    for (int i = 0; i < lines; i++) {
        int length = bytes - i % 7;
        memset(line, '.', (size_t)length);
        length -= 1;
        line[snprintf(line, 20, "sample %d", i)] = ' ';
        line[length] = '\n';
        if (write(1, line, (size_t)length + 1) < 0)
            return 1;
        usleep((useconds_t)atoi(argv[2]) * 1000);
    }
    return 0;
}
