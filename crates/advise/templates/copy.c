/* Appends standard input to a file: @NAME@.
 * Build: cc -O2 -o log log.c      Use: log FILE < SOURCE
 * In a program of your own, call append_all with two descriptors. The target must not be open with O_APPEND, and only one
 * process may write it. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/sendfile.h>
#include <unistd.h>

enum { CHUNK_BYTES = 1 << 30 };

static ssize_t by_copy_file_range(int from, int to)
{
    return copy_file_range(from, NULL, to, NULL, CHUNK_BYTES, 0);
}

static ssize_t by_splice(int from, int to)
{
    return splice(from, NULL, to, NULL, CHUNK_BYTES, SPLICE_F_MOVE);
}

static ssize_t by_sendfile(int from, int to)
{
    return sendfile(to, from, NULL, CHUNK_BYTES);
}

static ssize_t by_read_and_write(int from, int to)
{
    static char block[65536];
    ssize_t bytes = read(from, block, sizeof block);
    for (ssize_t done = 0; done < bytes;) {
        ssize_t written = write(to, block + done, (size_t)(bytes - done));
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return -1;
        done += written;
    }
    return bytes;
}

/* Returns whether the kernel cannot do the call with these files, so that another must do it. */
static int is_unsupported(int error)
{
    return error == EINVAL || error == EXDEV || error == ENOSYS || error == EOPNOTSUPP || error == EBADF || error == EPERM;
}

/* Copies all bytes. The files keep their positions, so each method goes on where the one before it stopped. Some files say
 * that they end and do not (those of /proc), so only the end that read(2) sees is the end. */
static int append_all(int from, int to)
{
    ssize_t (*const methods[])(int, int) = {by_copy_file_range, by_splice, by_sendfile, by_read_and_write};
    const size_t last = sizeof methods / sizeof *methods - 1;
    for (size_t method = 0; method <= last;) {
        ssize_t bytes = methods[method](from, to);
        if (bytes == 0)
            method = method == last ? last + 1 : last;
        else if (bytes < 0 && errno != EINTR) {
            if (method == last || !is_unsupported(errno))
                return -1;
            method++;
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: log FILE\n");
        return 2;
    }
    int to = open(argv[1], O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (to < 0 || lseek(to, 0, SEEK_END) < 0 || append_all(STDIN_FILENO, to) != 0 || close(to) != 0) {
        perror(argv[1]);
        return 1;
    }
    return 0;
}
