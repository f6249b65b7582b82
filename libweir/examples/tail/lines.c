/* lines.c: finds the start of the last lines of a file, block by block from its end. */
#include "tail.h"

enum {
    FIRST_BLOCK = 1 << 14, /* usually contains the last lines */
    BLOCK = 1 << 18,
    GROUP = 64,            /* a loop of fixed length, which compilers vectorize */
};

/* Counts newlines in `groups` groups: at most 255, so that no byte counter overflows. */
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

/* Counts newlines. Much faster than a memchr per line. */
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

/* Returns the nth newline. */
const char *nth_newline(const char *from, size_t bytes, uint64_t n)
{
    const char *at = from, *end = from + bytes;
    while ((at = memchr(at, '\n', (size_t)(end - at))) && --n > 0)
        at++;
    return at;
}

/* Reads a whole block. -ENODATA: the file is shorter than its size said, or was truncated. */
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

/* Returns the start of the last `count` lines of [first, end), or -errno. */
int64_t start_of_last_lines(int fd, int64_t first, int64_t end, uint64_t count)
{
    int64_t start = end, result = 0;
    size_t size = FIRST_BLOCK;
    char *block = malloc(BLOCK);
    if (!block)
        return -ENOMEM;
    for (int64_t block_end = end; count > 0 && block_end > first; block_end = start, size = BLOCK) {
        start = (block_end - 1) & ~(int64_t)(size - 1); /* aligned with the page cache */
        if (start < first)
            start = first;
        size_t bytes = (size_t)(block_end - start);
        if ((result = read_block(fd, block, bytes, start)) < 0)
            break;
        if (block_end == end && block[bytes - 1] == '\n')
            bytes--; /* this newline ends the last line */
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
