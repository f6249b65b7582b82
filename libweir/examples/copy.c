/* copy.c: copies a file, with its permissions, and says what is in the copy when it could not be finished. */
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "example.h"

#define USAGE "FROM TO"

#ifndef FICLONE /* of linux/fs.h, which not every C library brings along */
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

/* Whoever may not read FROM must not read half of TO either: until all is there it is its owner's alone. */
static int open_target(const char *name)
{
    return open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
}

/* Only now is what was in TO given up: FROM is open, and is another file. */
static void empty_target(const struct side *from, const struct side *to)
{
    if (from->status.st_dev == to->status.st_dev && from->status.st_ino == to->status.st_ino) {
        weir_printf(weir_stderr(), "copy: %s and %s are the same file\n", from->name, to->name);
        exit(1);
    }
    if (S_ISREG(to->status.st_mode))
        check_call(ftruncate(weir_fd(to->s), 0), to->name);
}

/* Where the file system can, both share the blocks until one changes; it takes no time. */
static int share_blocks(const struct side *from, const struct side *to)
{
    if (!S_ISREG(from->status.st_mode) || !S_ISREG(to->status.st_mode))
        return -1;
    return ioctl(weir_fd(to->s), FICLONE, weir_fd(from->s));
}

/* From the buffer that was read into straight to the kernel. Returns 0 or -errno, and which side's it is. */
static int copy_bytes(const struct side *from, const struct side *to, const struct side **failed)
{
    char *block;
    ssize_t here, put = 0;
    while ((here = weir_peek(from->s, &block, 1)) > 0 && (put = weir_write(to->s, block, (size_t)here)) > 0)
        weir_skip(from->s, (size_t)put); /* less than `here`: the next write returns the error */
    *failed = here < 0 ? from : to;
    int result = here < 0 ? (int)here : put < 0 ? (int)put : 0;
    int flushed = weir_flush(to->s);
    return result < 0 ? result : flushed;
}

/* Of an existing file only its owner may; that is told, as the copy could be read by the wrong people. */
static int give_permissions(const struct side *from, const struct side *to)
{
    if (!S_ISREG(to->status.st_mode))
        return 0;
    return fchmod(weir_fd(to->s), from->status.st_mode & 0777) == -1 ? -errno : 0;
}

_Noreturn static void give_up_partial(const struct side *failed, const struct side *to, int error)
{
    struct weir_stats stats = { 0 };
    complain(failed->name, error);
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
        give_up(from.name, EISDIR);
    open_side(&to, argv[2], open_target(argv[2]), 4096); /* what is larger goes past the buffer, uncopied */
    empty_target(&from, &to);

    int result = share_blocks(&from, &to) == 0 ? 0 : copy_bytes(&from, &to, &failed);
    if (result < 0)
        give_up_partial(failed, &to, -result);
    check(give_permissions(&from, &to), to.name);
    check(weir_close(to.s), to.name); /* a full disk or quota behind a network shows only here */
    weir_close(from.s);
    return 0;
}
