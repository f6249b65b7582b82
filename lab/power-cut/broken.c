/* Replaces the file named "file" in a directory: write a new one, then rename. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    static char data[20000];
    if (argc < 2 || chdir(argv[1]) != 0)
        return 1;
    memset(data, 'n', sizeof data);
    int fd = open("file.new", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (write(fd, data, sizeof data) != sizeof data)
        return 1;
    close(fd);
    return rename("file.new", "file") != 0;
}
