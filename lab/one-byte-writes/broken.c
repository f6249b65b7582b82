/* Writes 100,000 bytes, each by a system call. */
#include <unistd.h>

int main(void)
{
    for (int byte = 0; byte < 100000; byte++)
        if (write(STDOUT_FILENO, "x", 1) != 1)
            return 1;
    return 0;
}
