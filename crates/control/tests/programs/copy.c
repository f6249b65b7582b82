/* copy.c: byte by byte with read(2) and write(2), from standard input to standard output. */
#include <unistd.h>

int main(void) {
    char byte;
    while (read(0, &byte, 1) == 1)
        if (write(1, &byte, 1) != 1) return 1;
    return 0;
}
