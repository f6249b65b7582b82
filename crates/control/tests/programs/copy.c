/* Copies standard input to standard output, one byte per read(2) and write(2). */
#include <unistd.h>

int main(void) {
    char byte;
    while (read(0, &byte, 1) == 1)
        if (write(1, &byte, 1) != 1) return 1;
    return 0;
}
