/* tr a w, one byte per call (tr2u). */
#include <unistd.h>

int main(void)
{
    char byte;
    while (read(STDIN_FILENO, &byte, 1) == 1) {
        if (byte == 'a')
            byte = 'w';
        if (write(STDOUT_FILENO, &byte, 1) != 1)
            return 1;
    }
    return 0;
}
