/* tr a w with one-byte read(2) and write(2) calls: the worst case of unbuffered I/O. */
#include <unistd.h>

int main(void)
{
    char byte;
    ssize_t n;

    while ((n = read(STDIN_FILENO, &byte, 1)) == 1) {
        if (byte == 'a')
            byte = 'w';
        if (write(STDOUT_FILENO, &byte, 1) != 1)
            return 1;
    }
    return n != 0;
}
