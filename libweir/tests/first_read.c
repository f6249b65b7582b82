/* first_read.c: a program that needs only the first bytes of a file pays for them alone: the first read is small, and the
 * memory of a closed stream is used again. One that reads all of the file makes few more calls. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../src/private.h"
#include "support/check.h"

static char path[] = "/tmp/weir-first-XXXXXX";
enum { FIRST_BYTES = 16384 };

static void make_file(size_t bytes)
{
    int fd = open(path, O_WRONLY | O_TRUNC);
    char *text = malloc(bytes);
    memset(text, 'x', bytes);
    for (size_t i = 99; i < bytes; i += 100)
        text[i] = '\n';
    check(write(fd, text, bytes) == (ssize_t)bytes, "write");
    close(fd);
    free(text);
}

static weir_stream *open_file(struct weir_options options)
{
    weir_stream *s = NULL;
    check(weir_open(&s, path, O_RDONLY, &options) == 0, "open");
    return s;
}

static struct weir_stats stats_of(weir_stream *s)
{
    struct weir_stats stats;
    weir_get_stats(s, &stats);
    return stats;
}

static void one_byte(void)
{
    static const struct {
        enum weir_access access;
        uint64_t bytes;
    } expected[] = {{WEIR_ACCESS_AUTO, FIRST_BYTES}, {WEIR_ACCESS_SEQUENTIAL, 131072}, {WEIR_ACCESS_RANDOM, 4096}};
    check_begin("the first byte of a large file");
    make_file(1000000);
    for (int i = 0; i < 3; i++) {
        weir_stream *s = open_file((struct weir_options){.access = expected[i].access});
        int byte = weir_getc(s);
        uint64_t bytes = stats_of(s).read_bytes;
        check(byte == 'x' && bytes == expected[i].bytes, "access %d: %d bytes", i, (int)bytes);
        weir_close(s);
    }
    weir_stream *s = open_file((struct weir_options){.buffer_bytes = 65536});
    check(weir_getc(s) == 'x' && stats_of(s).read_bytes == 65536, "a size that the program has chosen");
    weir_close(s);
    s = open_file((struct weir_options){0});
    char *from;
    check(weir_peek(s, &from, 50000) >= 50000 && stats_of(s).reads == 1, "a larger request is one read");
    weir_close(s);
}

static void whole_files(void)
{
    static const size_t sizes[] = {1, 100, FIRST_BYTES - 1, FIRST_BYTES, FIRST_BYTES + 1, 131072, 1000000};
    check_begin("whole files");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        make_file(sizes[i]);
        weir_stream *s = open_file((struct weir_options){0});
        char *record;
        size_t all = 0;
        for (ssize_t bytes; (bytes = weir_getrec(s, &record)) > 0;)
            all += (size_t)bytes;
        uint64_t reads = stats_of(s).reads, least = (sizes[i] + 131071) / 131072 + 1; /* one finds the end */
        check(all == sizes[i] && reads <= least + 1, "%zu bytes: %zu, %d reads", sizes[i], all, (int)reads);
        check(sizes[i] > FIRST_BYTES || reads <= 2, "%zu bytes: %d reads", sizes[i], (int)reads);
        weir_close(s);
    }
}

static int mappings;
static void *(*real_mmap)(void *address, size_t bytes, int protection, int flags, int fd, off_t offset);

static void *count_mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    mappings++;
    return real_mmap(address, bytes, protection, flags, fd, offset);
}

static void memory_is_reused(void)
{
    static const enum weir_on_fork all[] = {WEIR_FORK_EMPTY, WEIR_FORK_FLUSH, WEIR_FORK_KEEP};
    check_begin("the memory of a closed stream is used again");
    if (CHECK_SANITIZED) {
        check_skip("AddressSanitizer's memory is not used again");
        return;
    }
    real_mmap = weir__kernel.mmap;
    weir__kernel.mmap = count_mmap;
    for (int i = 0; i < 3; i++) {
        struct weir_options options = {.on_fork = all[i]};
        weir_close(open_file(options));
        mappings = 0;
        for (int turn = 0; turn < 10; turn++)
            weir_close(open_file(options));
        check(mappings == 0, "on_fork %d: %d mappings", i, mappings);
    }
    weir__kernel.mmap = real_mmap;
}

int main(void)
{
    close(mkstemp(path));
    one_byte();
    whole_files();
    memory_is_reused();
    unlink(path);
    return check_finish("first_read");
}
