/* copy.c: copies a file with its permissions. After an error it reports what the copy contains. */
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "example.h"

#define USAGE "FROM TO"

#ifndef FICLONE /* from linux/fs.h, which not every C library provides */
#define FICLONE _IOW(0x94, 9, int)
#endif

struct side {
    const char *name;
    weir_stream *s;
    struct stat status;
};

static void open_side(struct side *side, const char *name, int fd, size_t buffer_bytes)
{
    struct weir_options options = { .buffer_bytes = buffer_bytes };
    side->name = name;
    check_call(fd, name);
    check_call(fstat(fd, &side->status), name);
    check(weir_fdopen(&side->s, fd, &options), name);
}

/* Opens TO, readable by its owner only until the copy is complete: users who may not read FROM must not
 * read a part of it. */
static int open_target(const char *name)
{
    return open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
}

/* Truncates TO, after FROM was opened and found to be another file. */
static void empty_target(const struct side *from, const struct side *to)
{
    if (from->status.st_dev == to->status.st_dev && from->status.st_ino == to->status.st_ino) {
        weir_printf(weir_stderr(), "copy: %s and %s are the same file\n", from->name, to->name);
        exit(1);
    }
    if (S_ISREG(to->status.st_mode))
        check_call(ftruncate(weir_fd(to->s), 0), to->name);
}

/* Shares the blocks copy-on-write, if the file system supports it. */
static int share_blocks(const struct side *from, const struct side *to)
{
    if (!S_ISREG(from->status.st_mode) || !S_ISREG(to->status.st_mode))
        return -1;
    return ioctl(weir_fd(to->s), FICLONE, weir_fd(from->s));
}

/* Copies from the read buffer to the kernel. Returns 0 or -errno, and in *failed the side of the error. */
static int copy_bytes(const struct side *from, const struct side *to, const struct side **failed)
{
    char *block;
    ssize_t here, put = 0;
    while ((here = weir_peek(from->s, &block, 1)) > 0 && (put = weir_write(to->s, block, (size_t)here)) > 0)
        weir_skip(from->s, (size_t)put); /* fewer than `here` after an error, which the next write returns */
    *failed = here < 0 ? from : to;
    int result = here < 0 ? (int)here : put < 0 ? (int)put : 0;
    int flushed = weir_flush(to->s);
    return result < 0 ? result : flushed;
}

/* Copies the permissions. Only the owner of an existing file may change them; a failure is reported,
 * because users without access to FROM could read the copy. */
static int copy_permissions(const struct side *from, const struct side *to)
{
    if (!S_ISREG(to->status.st_mode))
        return 0;
    return fchmod(weir_fd(to->s), from->status.st_mode & 0777) == -1 ? -errno : 0;
}

_Noreturn static void fail_partial(const struct side *failed, const struct side *to, int error)
{
    struct weir_stats stats = { 0 };
    print_error(failed->name, error);
    if (weir_get_stats(to->s, &stats) == 0 && S_ISREG(to->status.st_mode))
        weir_printf(weir_stderr(), "copy: %s is not complete: it has the first %llu bytes\n", to->name,
                    (unsigned long long)stats.written_bytes);
    exit(1);
}

int main(int argc, char **argv)
{
    if (argc != 3)
        usage(USAGE, NULL, NULL);
    struct side from, to;
    const struct side *failed = &to;
    open_side(&from, argv[1], open(argv[1], O_RDONLY | O_CLOEXEC), 0);
    if (S_ISDIR(from.status.st_mode))
        fail(from.name, EISDIR);
    open_side(&to, argv[2], open_target(argv[2]), 4096); /* larger writes bypass the buffer */
    empty_target(&from, &to);

    int result = share_blocks(&from, &to) == 0 ? 0 : copy_bytes(&from, &to, &failed);
    if (result < 0)
        fail_partial(failed, &to, -result);
    check(copy_permissions(&from, &to), to.name);
    check(weir_close(to.s), to.name); /* network file systems report a full disk or an exceeded quota here */
    weir_close(from.s);
    return 0;
}
