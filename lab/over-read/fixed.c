/* Reads the first 4 characters and leaves the rest to cat. */
#include <unistd.h>

int main(void)
{
    char first[4];
    if (read(STDIN_FILENO, first, sizeof first) != sizeof first) /* no read-ahead */
        return 1;
    execlp("cat", "cat", (char *)NULL);
    return 1;
}
