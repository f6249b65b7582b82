/* Copies a file byte by byte. */
#include <fcntl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    char byte;
    if (argc < 3)
        return 2;
    int in = open(argv[1], O_RDONLY), out = open(argv[2], O_WRONLY | O_CREAT | O_TRUNC, 0644);
    while (read(in, &byte, 1) == 1)
        if (write(out, &byte, 1) != 1)
            return 1;
    return close(out) != 0;
}
