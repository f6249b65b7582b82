#include <fcntl.h>
#include <unistd.h>

int main(void)
{
    char block[16384];
    ssize_t got;
    int in = open("source", O_RDONLY);
    int out = open("target", O_WRONLY | O_CREAT | O_TRUNC, 0644);

    if (in < 0 || out < 0)
        return 1;
    while ((got = read(in, block, sizeof block)) > 0)
        if (write(out, block, (size_t)got) != got)
            return 1;
    close(in);
    close(out);
    return got < 0;
}
