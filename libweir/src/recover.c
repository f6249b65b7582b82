/* recover.c: weir_recover: checks that the owner of a spill file is dead, and finds and opens its sink. */
#include "spill.h"

#include <unistd.h>

#include "format.h"

/* ---- whether the owner lives ---- */

/* Parser state for /proc/PID/maps. The fifth field of each line is an inode number. */
struct maps_scan {
    unsigned field;
    uint64_t number;
    bool in_field, found;
};

static void scan_maps(struct maps_scan *scan, const char *part, size_t length, uint64_t ino)
{
    for (size_t i = 0; i < length; i++) {
        if (part[i] == ' ' || part[i] == '\n') {
            scan->found = scan->found || (scan->in_field && scan->field == 4 && scan->number == ino);
            scan->field = part[i] == '\n' ? 0 : scan->field + scan->in_field;
            scan->in_field = false;
            scan->number = 0;
            continue;
        }
        scan->in_field = true;
        scan->number = scan->number * 10 + (uint64_t)(part[i] - '0');
    }
}

/* Returns whether the owner still maps the file. Compares inode numbers only: a file with the same number
 * on another file system postpones the recovery. */
bool weir__owner_maps(const struct weir__spill_image *image, uint64_t ino)
{
    char part[1024], path[64] = "/proc/";
    struct maps_scan scan = {0};
    if (image->file.head.pid <= 0)
        return false;
    size_t length = 6 + weir__format_u64(path + 6, (uint64_t)image->file.head.pid);
    strcpy(path + length, "/maps");
    int fd = weir__open_repeated(path, O_RDONLY | O_CLOEXEC, 0);
    for (ssize_t got; fd >= 0 && (got = weir__kernel.read(fd, part, sizeof part)) != 0;) {
        if (got < 0 && errno != EINTR)
            break;
        scan_maps(&scan, part, got > 0 ? (size_t)got : 0, ino);
    }
    if (fd >= 0)
        weir__kernel.close(fd);
    return scan.found;
}

/* Returns whether this process owns the spill file. Checked before it is opened, because any close(2) of the file
 * would release this process's F_SETLK lock. */
static bool is_open_here(const char *path)
{
    struct stat status;
    weir_stream *s;
    bool found = false;
    if (!weir__globals || lstat(path, &status) != 0)
        return false;
    weir__registry_lock();
    for (size_t slot = 0; !found && (s = weir__next_stream(&slot)) != NULL;) {
        const struct weir__config *config = weir__config(s);
        found = config->spill && config->spill->file && config->pid == (int)getpid() &&
                config->spill->dev == status.st_dev && config->spill->ino == status.st_ino;
    }
    weir__registry_unlock();
    return found;
}

/* Requires that the spill file belongs to the user: it says which file is written. */
static int check_owner(const struct stat *status)
{
    return status->st_uid == geteuid() && !(status->st_mode & 022) ? 0 : -EPERM;
}

static int lock(int fd, short type)
{
    struct flock whole = {.l_type = type, .l_whence = SEEK_SET};
    int result = (int)WEIR_CALL(weir__kernel.fcntl(fd, F_OFD_SETLK, &whole));
    return result == -EAGAIN || result == -EACCES ? -EBUSY : result;
}

/* ---- the sink ---- */

int weir__reopen(int fd, int oflags)
{
    char link[64] = "/proc/self/fd/";
    link[14 + weir__format_u64(link + 14, (uint64_t)fd)] = 0;
    return weir__open_repeated(link, oflags | O_CLOEXEC | O_NOCTTY, 0);
}

static int open_fifo(int found)
{
    int fd = weir__reopen(found, O_WRONLY | O_NONBLOCK); /* -ENXIO: the FIFO has no reader */
    if (fd >= 0)
        weir__kernel.fcntl(fd, F_SETFL, (void *)(intptr_t)O_WRONLY);
    return fd;
}

/* Opens the owner's file itself, not another file that has its name now. Checks it by O_PATH first, because
 * opening a device can have side effects. */
static int open_sink(const struct weir__spill_image *image)
{
    const struct weir__spill_sink *sink = &image->file.sink;
    if (sink->path[0] == 0 || (sink->type != S_IFREG && sink->type != S_IFBLK && sink->type != S_IFIFO))
        return -ENXIO; /* the terminal may have been given to another user; a pipe has no name */
    int found = weir__open_repeated(sink->path, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
    if (found < 0)
        return found;
    int append = sink->kind == WEIR_SPILL_APPEND && !sink->lock ? O_APPEND : 0, fd = -ESTALE;
    if (weir__is_same_sink(image, found))
        fd = sink->type == S_IFIFO ? open_fifo(found) : weir__reopen(found, O_WRONLY | append);
    weir__kernel.close(found);
    return fd;
}

/* Checks the caller's descriptor. Linux appends through an O_APPEND descriptor even with pwrite(2), so the
 * file is reopened in that case. */
static int prepare_given_fd(const struct weir__spill_image *image, struct weir__target *target)
{
    int flags = (int)WEIR_CALL(weir__kernel.fcntl(target->fd, F_GETFL, NULL));
    if (flags < 0)
        return flags;
    target->same_file = weir__is_same_sink(image, target->fd);
    if ((flags & O_ACCMODE) == O_RDONLY || flags & O_PATH)
        return -EBADF;
    if (target->same_file && image->file.sink.kind == WEIR_SPILL_POSITIONED && flags & O_APPEND)
        return weir__reopen(target->fd, O_WRONLY);
    return target->fd;
}

static int write_out(struct weir__spill_image *image, int given, struct weir_recovered *found)
{
    if (found->bytes == 0)
        return 0;
    struct weir__target target = {given, -1, true, false};
    int fd = given < 0 ? open_sink(image) : prepare_given_fd(image, &target);
    if (fd < 0)
        return fd;
    target.fd = fd;
    target.read_fd =
        target.same_file && image->file.sink.kind != WEIR_SPILL_SEQUENTIAL ? weir__reopen(fd, O_RDONLY) : -1;
    int result = weir__replay(image, &target, found);
    if (target.read_fd >= 0)
        weir__kernel.close(target.read_fd);
    if (fd != given)
        weir__kernel.close(fd);
    return result;
}

static int recover_open_file(int spill, const char *path, int fd, struct weir_recovered *found)
{
    struct weir__spill_image image;
    struct stat status;
    int result = (int)WEIR_CALL(weir__kernel.fstat(spill, &status));
    if (result == 0 && !S_ISREG(status.st_mode))
        result = -EINVAL;
    if (result == 0 && fd < 0)
        result = check_owner(&status);
    if (result == 0)
        result = lock(spill, F_WRLCK);
    if (result == 0) /* checked again: the previous owner of the lock may have removed the file */
        result = (int)WEIR_CALL(weir__kernel.fstat(spill, &status));
    if (result == 0 && status.st_nlink == 0)
        result = -ENOENT;
    if (result == 0)
        result = weir__spill_load(&image, spill);
    if (result == 0 && weir__owner_maps(&image, status.st_ino))
        result = -EBUSY;
    if (result < 0)
        return result;
    weir__spill_describe(&image, found);
    result = write_out(&image, fd, found);
    if (result == 0)
        weir__spill_unlink(path, status.st_dev, status.st_ino);
    return result;
}

int weir_recover(const char *spill, int fd, struct weir_recovered *found)
{
    struct weir_recovered ignored;
    found = found ? found : &ignored;
    memset(found, 0, sizeof *found);
    if (is_open_here(spill))
        return -EBUSY;
    int file = weir__open_repeated(spill, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);
    if (file < 0)
        return file;
    int result = recover_open_file(file, spill, fd, found);
    lock(file, F_UNLCK); /* another thread may be in fork(2): its child would keep the lock */
    weir__kernel.close(file);
    return result;
}
