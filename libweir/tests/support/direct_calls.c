/* direct_calls.c: counts writes that bypass the page cache and writes through it. */
#include "direct_calls.h"

#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct direct_calls calls;
char path[300];
const char *test_dir;
static struct weir__kernel real;

bool is_direct(int fd) { return real.fcntl(fd, F_GETFL, NULL) & O_DIRECT; }

static ssize_t record_write(int fd, const void *from, ssize_t written)
{
    if (written > 0 && is_direct(fd)) {
        calls.direct++;
        calls.direct_bytes += (uint64_t)written;
        calls.last_address = from;
    } else if (written > 0) {
        calls.plain++;
        calls.plain_bytes += (uint64_t)written;
    }
    return written;
}

static ssize_t counted_write(int fd, const void *from, size_t bytes)
{
    if (calls.direct_errno && is_direct(fd)) {
        errno = calls.direct_errno;
        return -1;
    }
    return record_write(fd, from, real.write(fd, from, bytes));
}
static ssize_t counted_pwritev2(int fd, const struct iovec *iov, int count, off_t offset, int flags)
{
    return record_write(fd, iov->iov_base, real.pwritev2(fd, iov, count, offset, flags));
}
static ssize_t counted_writev(int fd, const struct iovec *iov, int count)
{
    return record_write(fd, iov->iov_base, real.writev(fd, iov, count));
}
static void record_read(const void *to)
{
    const char *at = to;
    calls.reads++;
    calls.last_address = to;
    calls.reads_elsewhere += at < calls.read_buffer || at >= calls.read_buffer + calls.read_buffer_bytes;
}

static ssize_t counted_pread(int fd, void *to, size_t bytes, off_t offset)
{
    record_read(to);
    return real.pread(fd, to, bytes, offset);
}
static ssize_t counted_read(int fd, void *to, size_t bytes)
{
    record_read(to);
    return real.read(fd, to, bytes);
}

weir_stream *open_file(int oflags, struct weir_options options)
{
    weir_stream *s = NULL;
    options.flags |= WEIR_DIRECT;
    int result = weir_open(&s, path, oflags, &options);
    check(result == 0, "open returned %d", result);
    memset(&calls, 0, sizeof calls);
    return s;
}

void fill_file(size_t bytes)
{
    char byte = 'o';
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    for (size_t i = 0; i < bytes; i++)
        check(write(fd, &byte, 1) == 1, "write failed");
    fsync(fd);
    close(fd);
}

size_t cached_pages(void)
{
    static unsigned char pages[65536];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t bytes = (size_t)lseek(fd, 0, SEEK_END), cached = 0;
    void *map = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
    check(map != MAP_FAILED && mincore(map, bytes, pages) == 0, "mincore failed");
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

bool direct_calls_install(void)
{
    real = weir__kernel;
    weir__kernel.write = counted_write;
    weir__kernel.writev = counted_writev;
    weir__kernel.pwritev2 = counted_pwritev2;
    weir__kernel.read = counted_read;
    weir__kernel.pread = counted_pread;
    test_dir = test_dir_make();
    snprintf(path, sizeof path, "%s/file", test_dir);
    return supports_direct_io(test_dir);
}
