/* spill_file.c: creates spill files completely or not at all, names them and removes them. */
#include "spill.h"

#include <limits.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "format.h"

enum { ATTEMPTS = 1000, ZERO_BYTES = 4096 };

static int check_length(int length, size_t bytes)
{
    return length < 0 || (size_t)length >= bytes ? -ENAMETOOLONG : 0;
}

/* Returns XDG_RUNTIME_DIR if it belongs to the user: after su(1) it may be another user's. */
static const char *runtime_dir(void)
{
    struct stat status;
    const char *dir = secure_getenv("XDG_RUNTIME_DIR");
    if (!dir || dir[0] != '/' || stat(dir, &status) != 0)
        return NULL;
    return S_ISDIR(status.st_mode) && status.st_uid == geteuid() ? dir : NULL;
}

int weir_spill_dir(char *to, size_t bytes)
{
    const char *dir = secure_getenv("WEIR_SPILL_DIR");
    if (dir && *dir)
        return check_length(snprintf(to, bytes, "%s", dir), bytes);
    dir = runtime_dir();
    if (dir)
        return check_length(snprintf(to, bytes, "%s/weir", dir), bytes);
    return check_length(snprintf(to, bytes, "/dev/shm/weir-%u", (unsigned)geteuid()), bytes);
}

/* Creates the directory, and requires that only this user can put files there. */
static int create_private_directory(const char *dir)
{
    struct stat status;
    if (mkdir(dir, 0700) != 0 && errno != EEXIST)
        return -errno;
    if (lstat(dir, &status) != 0)
        return -errno;
    if (S_ISLNK(status.st_mode) || !S_ISDIR(status.st_mode))
        return -ENOTDIR;
    return status.st_uid != geteuid() || status.st_mode & 022 ? -EPERM : 0;
}

/* Makes the path absolute: the program may change its directory before the file is removed. */
int weir__spill_make_absolute(char *path, size_t bytes)
{
    char directory[WEIR_SPILL_PATH];
    if (path[0] == '/')
        return 0;
    if (!getcwd(directory, sizeof directory))
        return -errno;
    size_t directory_length = strlen(directory), length = strlen(path);
    if (directory_length + 1 + length >= bytes)
        return -ENAMETOOLONG;
    memmove(path + directory_length + 1, path, length + 1);
    memcpy(path, directory, directory_length);
    path[directory_length] = '/';
    return 0;
}

/* Chooses the file's path. A requested name is used by the process that opened the stream; a forked child
 * appends its pid. */
static int choose_name(struct weir__spill *spill, int attempt)
{
    static _Atomic unsigned number;
    int pid = (int)getpid(), length = 0;
    size_t bytes = sizeof spill->path;
    char directory[WEIR_SPILL_PATH];
    if (spill->requested_path[0]) {
        if (attempt && pid == spill->first_pid)
            return -EEXIST; /* the name may be a dead owner's file, which must be recovered first */
        length = pid == spill->first_pid
                     ? snprintf(spill->path, bytes, "%s", spill->requested_path)
                     : snprintf(spill->path, bytes, "%s.%d-%d", spill->requested_path, pid, attempt);
        return check_length(length, bytes);
    }
    int result = weir_spill_dir(directory, sizeof directory);
    if (result == 0 && attempt == 0)
        result = create_private_directory(directory);
    if (result < 0)
        return result;
    length = snprintf(spill->path, bytes, "%s/%d-%u.weir", directory, pid, atomic_fetch_add(&number, 1));
    result = check_length(length, bytes);
    return result < 0 ? result : weir__spill_make_absolute(spill->path, bytes);
}

uint64_t weir__spill_checksum(const struct weir__spill_sink *sink)
{
    const unsigned char *byte = (const void *)sink;
    uint64_t sum = UINT64_C(14695981039346656037); /* FNV-1a: detects damage, not forgery */
    for (size_t i = 0; i < sizeof *sink; i++)
        sum = (sum ^ byte[i]) * UINT64_C(1099511628211);
    return sum;
}

/* Allocates blocks by writing zeros, for file systems without fallocate(2). */
static int write_zeros(int fd, uint64_t bytes)
{
    static const char zeros[ZERO_BYTES];
    struct stat status;
    int64_t result = WEIR_CALL(weir__kernel.fstat(fd, &status));
    for (uint64_t at = result < 0 ? bytes : (uint64_t)status.st_size; at < bytes;) {
        size_t part = bytes - at < ZERO_BYTES ? (size_t)(bytes - at) : ZERO_BYTES;
        result = WEIR_CALL(weir__kernel.pwrite(fd, zeros, part, (off_t)at));
        if (result == -EINTR)
            continue;
        if (result <= 0)
            return result < 0 ? (int)result : -EIO;
        at += (uint64_t)result;
    }
    return result < 0 ? (int)result : 0;
}

int weir__spill_allocate_blocks(int fd, uint64_t bytes)
{
    int result;
    do
        result = (int)WEIR_CALL(weir__kernel.fallocate(fd, 0, 0, (off_t)bytes));
    while (result == -EINTR);
    return result == -EOPNOTSUPP || result == -ENOSYS ? write_zeros(fd, bytes) : result;
}

static int lock(int fd)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return (int)WEIR_CALL(weir__kernel.fcntl(fd, F_SETLK, &whole));
}

/* Maps the file and fills in the header. MADV_DONTFORK keeps it from the caller's children. */
static int map_and_initialize(struct weir__spill *spill, size_t buffer_bytes,
                              const struct weir__spill_sink *sink)
{
    size_t header_bytes = (sizeof(struct weir__spill_file) + weir__page - 1) & ~(weir__page - 1);
    size_t bytes = header_bytes + ((buffer_bytes + weir__page - 1) & ~(weir__page - 1));
    int flags = spill->fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, result = 0;
    if (spill->fd >= 0 && (result = weir__spill_allocate_blocks(spill->fd, bytes)) < 0)
        return result;
    struct weir__spill_file *file = weir__kernel.mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, spill->fd, 0);
    if (file == MAP_FAILED)
        return -errno;
    spill->file = file;
    spill->mapped = bytes;
    if (spill->fd >= 0 && madvise(file, bytes, MADV_DONTFORK) != 0)
        return -errno;
    file->head = (struct weir_head){
        .magic = WEIR_HEAD_MAGIC, .layout = WEIR_LAYOUT, .pid = (int32_t)getpid(), .buffer_bytes = buffer_bytes};
    file->magic = WEIR_SPILL_MAGIC;
    file->layout = WEIR_SPILL_LAYOUT;
    file->buffer_at = header_bytes;
    file->inflight = (struct weir__inflight){WEIR_SPILL_NONE, 0, 0, WEIR_SPILL_NONE};
    file->mode = WEIR_FULL;
    file->sink = *sink;
    file->checksum = weir__spill_checksum(sink);
    return 0;
}

static int lock_and_identify(struct weir__spill *spill)
{
    struct stat status;
    int result = (int)WEIR_CALL(weir__kernel.fstat(spill->fd, &status));
    if (result < 0)
        return result;
    spill->dev = status.st_dev;
    spill->ino = status.st_ino;
    return lock(spill->fd);
}

static int open_unnamed(const char *path)
{
    char directory[WEIR_SPILL_PATH];
    size_t length = (size_t)(strrchr(path, '/') - path);
    memcpy(directory, path, length);
    strcpy(directory + length, length ? "" : "/");
    return weir__open_repeated(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
}

/* Gives the file its name, after it is complete and locked. */
static int link_name(struct weir__spill *spill)
{
    char link[64] = "/proc/self/fd/";
    link[14 + weir__format_u64(link + 14, (uint64_t)spill->fd)] = 0;
    int result = -EEXIST;
    for (int attempt = 1; result == -EEXIST && attempt <= ATTEMPTS; attempt++) {
        result = linkat(AT_FDCWD, link, AT_FDCWD, spill->path, AT_SYMLINK_FOLLOW) == 0 ? 0 : -errno;
        int named = result == -EEXIST ? choose_name(spill, attempt) : 0;
        result = named < 0 ? named : result;
    }
    return result;
}

/* Creates the file by name, on file systems without O_TMPFILE. A kill at this moment leaves an empty
 * file. */
static int open_named(struct weir__spill *spill)
{
    int fd = -EEXIST;
    for (int attempt = 1; fd == -EEXIST && attempt <= ATTEMPTS; attempt++) {
        fd = weir__open_repeated(spill->path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        int named = fd == -EEXIST ? choose_name(spill, attempt) : 0;
        fd = named < 0 ? named : fd;
    }
    return fd;
}

static int create(struct weir__spill *spill, size_t buffer_bytes, const struct weir__spill_sink *sink, bool named)
{
    int fd = named ? open_named(spill) : open_unnamed(spill->path);
    if (fd < 0)
        return fd;
    spill->fd = fd;
    int result = lock_and_identify(spill);
    if (result == 0)
        result = map_and_initialize(spill, buffer_bytes, sink);
    if (result == 0 && !named)
        result = link_name(spill);
    if (result == 0)
        return 0;
    if (spill->file)
        weir__kernel.munmap(spill->file, spill->mapped);
    spill->file = NULL;
    if (named)
        weir__spill_unlink(spill->path, spill->dev, spill->ino);
    weir__kernel.close(fd);
    spill->fd = -1;
    return result;
}

int weir__spill_create(struct weir__spill *spill, size_t buffer_bytes, const struct weir__spill_sink *sink)
{
    if (spill->anonymous)
        return map_and_initialize(spill, buffer_bytes, sink);
    int result = choose_name(spill, 0);
    if (result < 0)
        return result;
    result = create(spill, buffer_bytes, sink, false);
    if (result == -EOPNOTSUPP || result == -EISDIR || result == -EINVAL || result == -ENOENT)
        result = create(spill, buffer_bytes, sink, true); /* no O_TMPFILE, or no /proc for linkat(2) */
    return result;
}

/* Removes the file if the name still refers to it. */
void weir__spill_unlink(const char *path, uint64_t dev, uint64_t ino)
{
    struct stat status;
    if (lstat(path, &status) == 0 && status.st_dev == dev && status.st_ino == ino)
        weir__kernel.unlink(path);
}
