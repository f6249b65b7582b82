/* direct_watch.c: counting what goes around the page cache and what goes through it. */
#include "direct_watch.h"

#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct direct_seen seen;
char path[300];
const char *place;
static struct weir__kernel real;

bool is_direct(int fd) { return real.fcntl(fd, F_GETFL, NULL) & O_DIRECT; }

static ssize_t note(int fd, const void *from, ssize_t taken)
{
    if (taken > 0 && is_direct(fd)) {
        seen.direct++;
        seen.direct_bytes += (uint64_t)taken;
        seen.last = from;
    } else if (taken > 0) {
        seen.plain++;
        seen.plain_bytes += (uint64_t)taken;
    }
    return taken;
}

static ssize_t note_write(int fd, const void *from, size_t bytes)
{
    if (seen.fail_direct && is_direct(fd)) {
        errno = seen.fail_direct;
        return -1;
    }
    return note(fd, from, real.write(fd, from, bytes));
}
static ssize_t note_pwritev2(int fd, const struct iovec *iov, int count, off_t offset, int flags)
{
    return note(fd, iov->iov_base, real.pwritev2(fd, iov, count, offset, flags));
}
static ssize_t note_writev(int fd, const struct iovec *iov, int count)
{
    return note(fd, iov->iov_base, real.writev(fd, iov, count));
}
static void note_place(const void *to)
{
    const char *at = to;
    seen.reads++;
    seen.last = to;
    seen.elsewhere += at < seen.buffer || at >= seen.buffer + seen.buffer_bytes;
}

static ssize_t note_pread(int fd, void *to, size_t bytes, off_t offset)
{
    note_place(to);
    return real.pread(fd, to, bytes, offset);
}
static ssize_t note_read(int fd, void *to, size_t bytes)
{
    note_place(to);
    return real.read(fd, to, bytes);
}

weir_stream *open_file(int oflags, struct weir_options options)
{
    weir_stream *s = NULL;
    options.flags |= WEIR_DIRECT;
    int result = weir_open(&s, path, oflags, &options);
    check(result == 0, "open returned %d", result);
    memset(&seen, 0, sizeof seen);
    return s;
}

void fill_file(size_t bytes)
{
    char byte = 'o';
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    for (size_t i = 0; i < bytes; i++)
        check(write(fd, &byte, 1) == 1, "a byte");
    fsync(fd);
    close(fd);
}

size_t cached_pages(void)
{
    static unsigned char pages[65536];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t bytes = (size_t)lseek(fd, 0, SEEK_END), cached = 0;
    void *map = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
    check(map != MAP_FAILED && mincore(map, bytes, pages) == 0, "mincore");
    for (size_t i = 0; i < (bytes + weir__page - 1) / weir__page; i++)
        cached += pages[i] & 1;
    munmap(map, bytes);
    close(fd);
    return cached;
}

size_t put_lines(weir_stream *s, size_t at_least)
{
    size_t bytes = 0;
    for (int i = 0; bytes < at_least; i++) {
        int length = weir_printf(s, "line %d of many that go past the page cache\n", i);
        if (!check(length > 0, "printf returned %d", length))
            break;
        bytes += (size_t)length;
    }
    return bytes;
}

size_t file_size(void)
{
    struct stat status;
    return stat(path, &status) == 0 ? (size_t)status.st_size : SIZE_MAX;
}

bool direct_watch(void)
{
    real = weir__kernel;
    weir__kernel.write = note_write;
    weir__kernel.writev = note_writev;
    weir__kernel.pwritev2 = note_pwritev2;
    weir__kernel.read = note_read;
    weir__kernel.pread = note_pread;
    place = place_make();
    snprintf(path, sizeof path, "%s/file", place);
    return place_takes_direct(place);
}
