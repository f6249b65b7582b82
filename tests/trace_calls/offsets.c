/* Reads the file "in", of 8192 bytes, and copies it by copy_file_range(2) and sendfile(2), with and without an offset of the call's own.
 * No byte is read or written twice through one descriptor, and no seek moves an offset. */
#include <fcntl.h>
#include <sys/sendfile.h>
#include <unistd.h>

int main(void)
{
    static char block[8192];
    int in = open("in", O_RDONLY), from = open("in", O_RDONLY), other = open("in", O_RDONLY);
    int to = open("to", O_WRONLY | O_CREAT | O_TRUNC, 0600), out = open("out", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    off_t at = 4096;
    if (read(in, block, 3000) != 3000 || read(in, block, sizeof block) != 5192)
        return 1;
    if (copy_file_range(from, 0, to, 0, 4096, 0) != 4096 || lseek(from, 4096, SEEK_SET) != 4096)
        return 2;
    if (lseek(to, 4096, SEEK_SET) != 4096 || read(from, block, 4096) != 4096 || write(to, block, 4096) != 4096)
        return 3;
    if (sendfile(out, other, &at, 2048) != 2048 || sendfile(out, other, &at, 2048) != 2048)
        return 4;
    return 0;
}
