/* Reads the first 4 characters and leaves the rest to cat. */
#include <stdio.h>
#include <unistd.h>

int main(void)
{
    char first[5];
    if (!fgets(first, sizeof first, stdin))
        return 1;
    execlp("cat", "cat", (char *)NULL);
    return 1;
}
