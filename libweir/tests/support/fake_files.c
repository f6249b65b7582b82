/* fake_files.c: files, pipes, terminals and sockets in memory, and descriptors for them. */
#include "fake_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DESCRIPTORS = 1024 };

static struct {
    struct fake_file *file; /* NULL: a real descriptor */
    int64_t position;
    int oflags;
} open_files[DESCRIPTORS];

struct fake_file *fake_file_of(int fd) { return fd >= 0 && fd < DESCRIPTORS ? open_files[fd].file : NULL; }
int fake_oflags(int fd) { return open_files[fd].oflags; }
void fake_set_oflags(int fd, int oflags) { open_files[fd].oflags = oflags; }
void fake_release(int fd) { open_files[fd].file = NULL; }
bool fake_is_open(int fd) { return fake_file_of(fd) != NULL; }
int64_t fake_position(int fd) { return open_files[fd].position; }
void fake_set_position(int fd, int64_t position) { open_files[fd].position = position; }

void fake_file_make(struct fake_file *f, enum fake_kind kind)
{
    memset(f, 0, sizeof *f);
    f->kind = kind;
}

/* Extends the file with zeros to at least `size` bytes. */
static void extend(struct fake_file *f, size_t size)
{
    if (size > f->capacity) {
        f->capacity = size * 2 + 64;
        f->bytes = realloc(f->bytes, f->capacity);
        if (!f->bytes)
            abort();
    }
    if (size > f->size) {
        memset(f->bytes + f->size, 0, size - f->size);
        f->size = size;
    }
}

static bool is_duplex(const struct fake_file *f) { return f->kind == FAKE_TERMINAL || f->kind == FAKE_SOCKET; }

void fake_file_fill(struct fake_file *f, const void *bytes, size_t size)
{
    if (!is_duplex(f)) {
        f->size = 0;
        extend(f, size);
        if (size)
            memcpy(f->bytes, bytes, size);
        return;
    }
    free(f->input);
    f->input = malloc(size + 1);
    if (!f->input)
        abort();
    memcpy(f->input, bytes, size);
    f->input_size = size;
}

void fake_file_free(struct fake_file *f)
{
    free(f->bytes);
    free(f->input);
    memset(f, 0, sizeof *f);
}

/* Returns a real descriptor, so that no other open(2) gets the same number; a terminal's for FAKE_TERMINAL. */
static int reserve_number(enum fake_kind kind)
{
    static int null = -1, terminal = -1;
    if (null < 0)
        null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (terminal < 0 && kind == FAKE_TERMINAL) {
        int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
        if (master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0)
            terminal = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    }
    return dup(kind == FAKE_TERMINAL ? terminal : null);
}

int fake_open(struct fake_file *f, int oflags)
{
    int fd = reserve_number(f->kind);
    if (fd < 0 || fd >= DESCRIPTORS)
        abort();
    open_files[fd].file = f;
    open_files[fd].position = 0;
    open_files[fd].oflags = oflags;
    return fd;
}

/* Returns true if the descriptor allows `access`; else sets errno to EBADF. */
static bool may_access(int fd, int access)
{
    int allowed = open_files[fd].oflags & O_ACCMODE;
    if (allowed == O_RDWR || allowed == access)
        return true;
    errno = EBADF;
    return false;
}

static size_t space_left(const struct fake_file *f, int64_t at, size_t bytes)
{
    if (!f->space || (size_t)at + bytes <= f->space)
        return bytes;
    return (size_t)at < f->space ? f->space - (size_t)at : 0;
}

ssize_t fake_put(int fd, const struct iovec *iov, int count, size_t bytes, const off_t *offset)
{
    struct fake_file *f = fake_file_of(fd);
    if (!may_access(fd, O_WRONLY))
        return -1;
    bool at_end = f->kind != FAKE_FILE || (!offset && open_files[fd].oflags & O_APPEND);
    int64_t at = at_end ? (int64_t)f->size : offset ? *offset : open_files[fd].position;
    if (bytes > 0 && (bytes = space_left(f, at, bytes)) == 0) {
        errno = ENOSPC;
        return -1;
    }
    size_t left = bytes;
    for (int i = 0; i < count && left > 0; i++) {
        size_t part = iov[i].iov_len < left ? iov[i].iov_len : left;
        extend(f, (size_t)at + part);
        if (part)
            memcpy(f->bytes + at, iov[i].iov_base, part);
        at += (int64_t)part;
        left -= part;
    }
    f->written += bytes;
    if (!offset)
        open_files[fd].position = at;
    return (ssize_t)bytes;
}

ssize_t fake_get(int fd, void *to, size_t bytes, const off_t *offset)
{
    struct fake_file *f = fake_file_of(fd);
    if (!may_access(fd, O_RDONLY))
        return -1;
    const unsigned char *from = is_duplex(f) ? f->input : f->bytes;
    size_t size = is_duplex(f) ? f->input_size : f->size;
    size_t at = offset ? (size_t)*offset : f->kind == FAKE_FILE ? (size_t)open_files[fd].position : f->begin;
    if (at >= size)
        return 0;
    bytes = bytes < size - at ? bytes : size - at;
    memcpy(to, from + at, bytes);
    if (f->kind != FAKE_FILE)
        f->begin += bytes;
    else if (!offset)
        open_files[fd].position += (int64_t)bytes;
    return (ssize_t)bytes;
}

int64_t fake_move(int fd, int64_t offset, int whence)
{
    struct fake_file *f = fake_file_of(fd);
    if (f->kind != FAKE_FILE) {
        errno = ESPIPE;
        return -1;
    }
    int64_t base = whence == SEEK_CUR ? open_files[fd].position : whence == SEEK_END ? (int64_t)f->size : 0;
    if (base + offset < 0) {
        errno = EINVAL;
        return -1;
    }
    return open_files[fd].position = base + offset;
}
