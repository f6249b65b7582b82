/* open_path.c: weir_open. If it fails because of its options, no file is truncated or left behind: what can be checked before
 * open(2) is, and with options that can fail later the file is truncated last, and removed if it is new. */
#include "private.h"

#include <unistd.h>

/* Returns whether the options can make the opening fail after open(2): the spill file, the directory, O_DIRECT, io_uring. */
static bool can_fail_late(int oflags, const struct weir_options *options)
{
    return (oflags & O_ACCMODE) != O_RDONLY &&
           (options->durability == WEIR_KILL || options->durability >= WEIR_DATA || options->flags & (WEIR_DIRECT | WEIR_URING));
}

bool weir__truncates_late(int oflags, const struct weir_options *options)
{
    return oflags & O_TRUNC && can_fail_late(oflags, options);
}

/* Returns whether open(2) would open a regular file or a block device: they have a file offset. */
static bool has_position(const char *path, int oflags)
{
    struct stat status;
    if (stat(path, &status) != 0)
        return errno == ENOENT && oflags & O_CREAT;
    return S_ISREG(status.st_mode) || S_ISBLK(status.st_mode);
}

/* Returns -EINVAL for options that weir__open_fd would refuse for this kind of access; 0 for others. */
static int check_access(const char *path, int oflags, const struct weir_options *options)
{
    int access = oflags & O_ACCMODE;
    if (options->durability == WEIR_KILL && access != O_WRONLY)
        return -EINVAL;
    if (options->flags & WEIR_URING && (access == O_RDONLY || (access != O_WRONLY && has_position(path, oflags))))
        return -EINVAL;
    return 0;
}

/* Closes a descriptor. `created`: also removes the file, if it still has its name. */
static void discard(int fd, const char *path, bool created)
{
    struct stat named, open_file;
    if (created && lstat(path, &named) == 0 && fstat(fd, &open_file) == 0 && named.st_dev == open_file.st_dev &&
        named.st_ino == open_file.st_ino)
        weir__kernel.unlink(path);
    weir__kernel.close(fd);
}

/* Creates the file. Sets O_DIRECT afterwards: open(2) creates a file also where it then refuses the flag. */
static int create_file(const char *path, int oflags)
{
    int fd = weir__open_repeated(path, (oflags & ~O_DIRECT) | O_EXCL, 0666);
    if (fd < 0 || !(oflags & O_DIRECT))
        return fd;
    int result = (int)WEIR_CALL(weir__kernel.fcntl(fd, F_SETFL, (void *)(intptr_t)oflags));
    if (result == 0)
        return fd;
    discard(fd, path, true);
    return result;
}

/* Opens the file. *created: this call has created it. */
static int open_file(const char *path, int oflags, bool careful, bool *created)
{
    int fd = -EEXIST;
    *created = false;
    if (careful && oflags & O_CREAT) {
        fd = create_file(path, oflags);
        *created = fd >= 0;
    }
    return fd != -EEXIST || (careful && oflags & O_CREAT && oflags & O_EXCL) ? fd : weir__open_repeated(path, oflags, 0666);
}

int weir_open(weir_stream **s, const char *path, int oflags, const struct weir_options *options)
{
    static const struct weir_options defaults;
    *s = NULL;
    options = options ? options : &defaults;
    int result = weir__options_check(options);
    if (result == 0)
        result = check_access(path, oflags, options);
    if (result < 0)
        return result;
    int direct = options->flags & WEIR_DIRECT ? O_DIRECT : 0, now = weir__truncates_late(oflags, options) ? oflags & ~O_TRUNC : oflags;
    bool created;
    int fd = open_file(path, now | direct | O_CLOEXEC, can_fail_late(oflags, options), &created);
    if (fd < 0)
        return fd;
    result = weir__open_fd(s, fd, oflags, path, options);
    if (result < 0)
        discard(fd, path, created);
    return result;
}
