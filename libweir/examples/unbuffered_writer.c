/* unbuffered_writer.c: writes 100,000 bytes, each by its own write(2). Compare with buffered_writer. */
#include <fcntl.h>

#include "example.h"

#define USAGE "[FILE|- [COUNT]]"

static int open_target(const char *name)
{
    if (strcmp(name, STDOUT_NAME) == 0)
        return STDOUT_FILENO;
    return (int)check_call(open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666), name);
}

static void write_byte(int fd, const char *name)
{
    ssize_t written;
    do
        written = write(fd, "x", 1);
    while (written == 0 || (written == -1 && errno == EINTR));
    check_call(written, name);
}

int main(int argc, char **argv)
{
    if (argc > 3)
        usage(USAGE, NULL, NULL);
    const char *name = argc > 1 && strcmp(argv[1], "-") != 0 ? argv[1] : STDOUT_NAME;
    uint64_t count = argc > 2 ? number_argument(argv[2], UINT64_MAX, USAGE) : 100000;
    int fd = open_target(name);
    for (uint64_t i = 0; i < count; i++)
        write_byte(fd, name);
    check_call(close(fd), name);
    return 0;
}
