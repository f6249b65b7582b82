/* Cuts the power of a file system: FS_IOC_SHUTDOWN without writing its log. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/ioctl.h>

int main(int argc, char **argv)
{
    uint32_t without_log = 2;
    int fd = argc > 1 ? open(argv[1], O_RDONLY) : -1;
    if (fd < 0 || ioctl(fd, _IOR('X', 125, uint32_t), &without_log) != 0) {
        perror("FS_IOC_SHUTDOWN");
        return 1;
    }
    return 0;
}
