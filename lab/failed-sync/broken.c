/* Writes 1 MiB into the file and calls fsync again after a failure, as many programs do. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    static char data[1 << 20];
    int fd = argc > 1 ? open(argv[1], O_WRONLY | O_CREAT, 0600) : -1;
    memset(data, 'x', sizeof data);
    if (fd < 0 || write(fd, data, sizeof data) != sizeof data)
        return 1;
    for (int attempt = 0; attempt < 2; attempt++)
        puts(fsync(fd) == 0 ? "ok" : strerrorname_np(errno));
    return 0;
}
