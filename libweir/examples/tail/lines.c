/* lines.c: where the last lines of a file begin, found block by block from its end. */
#include "tail.h"

enum {
    FIRST_BLOCK = 1 << 14, /* most often enough, and read in no time */
    BLOCK = 1 << 18,
    GROUP = 64,            /* a loop of fixed length: compilers make vector code of it */
};

/* Newlines in `groups` groups, at most 255 of them so that each counter of a byte holds. */
static uint64_t count_groups(const char *from, size_t groups)
{
    uint8_t counters[GROUP] = { 0 };
    uint64_t sum = 0;
    for (; groups > 0; groups--, from += GROUP)
        for (int i = 0; i < GROUP; i++)
            counters[i] = (uint8_t)(counters[i] + (from[i] == '\n'));
    for (int i = 0; i < GROUP; i++)
        sum += counters[i];
    return sum;
}

/* Counting takes a fraction of the time of a memchr for each line. */
uint64_t count_newlines(const char *from, size_t bytes)
{
    uint64_t sum = 0;
    while (bytes >= GROUP) {
        size_t groups = bytes / GROUP < 255 ? bytes / GROUP : 255;
        sum += count_groups(from, groups);
        from += groups * GROUP;
        bytes -= groups * GROUP;
    }
    for (; bytes > 0; bytes--)
        sum += *from++ == '\n';
    return sum;
}

/* The nth newline of those that are there. */
const char *nth_newline(const char *from, size_t bytes, uint64_t n)
{
    const char *at = from, *end = from + bytes;
    while ((at = memchr(at, '\n', (size_t)(end - at))) && --n > 0)
        at++;
    return at;
}

/* -ENODATA: the file is not as long as it says, or has just become shorter. */
static int read_block(int fd, char *to, size_t bytes, int64_t at)
{
    while (bytes > 0) {
        ssize_t got = pread(fd, to, bytes, at);
        if (got == -1 && errno == EINTR)
            continue;
        if (got <= 0)
            return got == 0 ? -ENODATA : -errno;
        to += got, at += got, bytes -= (size_t)got;
    }
    return 0;
}

/* The last `count` lines of [first, end) begin here; or -errno. */
int64_t start_of_last_lines(int fd, int64_t first, int64_t end, uint64_t count)
{
    int64_t start = end, result = 0;
    size_t size = FIRST_BLOCK;
    char *block = malloc(BLOCK);
    if (!block)
        return -ENOMEM;
    for (int64_t block_end = end; count > 0 && block_end > first; block_end = start, size = BLOCK) {
        start = (block_end - 1) & ~(int64_t)(size - 1); /* as the page cache lies */
        if (start < first)
            start = first;
        size_t bytes = (size_t)(block_end - start);
        if ((result = read_block(fd, block, bytes, start)) < 0)
            break;
        if (block_end == end && block[bytes - 1] == '\n')
            bytes--; /* ends the last line: there is none behind it */
        uint64_t here = count_newlines(block, bytes);
        if (here >= count) {
            start += nth_newline(block, bytes, here - count + 1) - block + 1;
            break;
        }
        count -= here;
    }
    free(block);
    return result < 0 ? result : start;
}
