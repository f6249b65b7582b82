/* The child seeks to the end of the file, then the parent reads the file. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    char text[64];
    int fd = open("text", O_RDONLY);
    pid_t child = fork();
    if (child == 0) {
        fd = open("text", O_RDONLY); /* an offset of its own */
        lseek(fd, -7, SEEK_END);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    ssize_t got = read(fd, text, sizeof text);
    printf("%.*s\n", (int)(got > 0 ? got : 0), text);
    return 0;
}
