/* Writes a block with O_DIRECT, then three at an offset that no device takes. Exits with 77 if the file system takes it, or has no
 * O_DIRECT. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

int main(void)
{
    void *block = aligned_alloc(4096, 4096);
    int fd = open("direct.dat", O_RDWR | O_CREAT | O_DIRECT, 0600);
    if (fd < 0 || pwrite(fd, block, 4096, 0) != 4096)
        return 77;
    for (int i = 0; i < 3; i++)
        if (pwrite(fd, block, 4096, 100) >= 0 || errno != EINVAL)
            return 77;
    return 0;
}
