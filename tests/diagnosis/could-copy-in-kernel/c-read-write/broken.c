#include <fcntl.h>
#include <unistd.h>

static int copy(const char *from, const char *to)
{
    static char block[1024];
    ssize_t got;
    int in = open(from, O_RDONLY);
    int out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0644);

    if (in < 0 || out < 0)
        return -1;
    while ((got = read(in, block, sizeof block)) > 0)
        if (write(out, block, (size_t)got) != got)
            return -1;
    return close(in) || close(out) || got < 0 ? -1 : 0;
}

int main(void)
{
    return copy("source", "backup") != 0;
}
