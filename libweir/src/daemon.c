/* daemon.c: replaces daemon(3) of the C library, which ends the process by _exit(2) and continues in a child. Pending bytes
 * would be lost: they stay in the parent. All streams are flushed before. */
#include "private.h"

#include <sys/sysmacros.h>
#include <unistd.h>

/* Returns a descriptor of the null device, and of nothing else that has its name. */
static int open_null(void)
{
    struct stat status;
    int fd = open("/dev/null", O_RDWR);
    if (fd < 0 || (fstat(fd, &status) == 0 && S_ISCHR(status.st_mode) && status.st_rdev == makedev(1, 3)))
        return fd;
    close(fd);
    errno = ENODEV;
    return -1;
}

static int use_null(void)
{
    int null = open_null();
    if (null < 0)
        return -1;
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        dup2(null, fd);
    if (null > STDERR_FILENO)
        close(null);
    return 0;
}

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

int daemon(int keep_directory, int keep_descriptors)
{
    weir__before_daemon();
    pid_t child = fork();
    if (child < 0)
        return -1;
    if (child > 0)
        _exit(0);
    if (setsid() < 0)
        return -1;
    if (!keep_directory && chdir("/") != 0)
        return -1;
    return keep_descriptors ? 0 : use_null();
}

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
