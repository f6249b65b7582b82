/* A filter with a buffer of its own: it writes the buffer after each line. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char block[4096];
static size_t filled;

static void put(const char *text, size_t bytes)
{
    while (bytes > 0) {
        size_t part = sizeof block - filled < bytes ? sizeof block - filled : bytes;
        memcpy(block + filled, text, part);
        filled += part;
        text += part;
        bytes -= part;
        if (filled == sizeof block) {
            if (write(1, block, filled) < 0)
                _exit(1);
            filled = 0;
        }
    }
}

int main(void)
{
    static char line[2048];
    while (fgets(line, sizeof line, stdin)) {
        put(line, strlen(line));
        if (filled > 0 && write(1, block, filled) < 0)
            return 1;
        filled = 0;
    }
    return filled > 0 && write(1, block, filled) < 0;
}
