/* direct_rules.c: WEIR_DIRECT: which bytes bypass the page cache, and which go through it. */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/direct_calls.h"

static void whole_buffers_are_direct(void)
{
    size_t sizes[] = {0, 1, 511, 512, 5000}, bytes;
    for (int i = 0; i < 5; i++) {
        fill_file(sizes[i]);
        weir_stream *s = open_file(O_WRONLY | O_APPEND, (struct weir_options){0});
        bytes = put_lines(s, 4 << 20);
        check(weir_close(s) == 0, "close");
        check(calls.direct_bytes + 2 * 4096 > bytes, "of %zu bytes %zu are direct", bytes, (size_t)calls.direct_bytes);
        check(calls.plain <= 2, "%u writes through the cache", calls.plain);
        check(calls.direct <= bytes / 131072 + 3, "%u direct writes", calls.direct);
        check(cached_pages() <= 3, "%zu pages in the cache", cached_pages());
        check(file_size() == sizes[i] + bytes, "%zu bytes", file_size());
    }
}

static void a_flush_costs_one_page(void)
{
    fill_file(0);
    weir_stream *s = open_file(O_WRONLY, (struct weir_options){0});
    size_t bytes = 0;
    for (int i = 0; i < 4; i++) {
        bytes += put_lines(s, 300000);
        check(weir_flush(s) == 0, "flush");
    }
    check(calls.plain <= 8 && calls.plain_bytes <= 8 * 4096, "%u, %zu bytes", calls.plain, (size_t)calls.plain_bytes);
    check(weir_tell(s) == (int64_t)bytes, "tell");
    check(weir_close(s) == 0, "close");
}

static void large_blocks_are_not_copied(void)
{
    enum { BYTES = 1 << 20 };
    char *block = aligned_alloc(4096, 2 * BYTES);
    weir_stream *s;
    memset(block, 'x', 2 * BYTES);
    fill_file(0);
    s = open_file(O_RDWR, (struct weir_options){0});
    check(weir_write(s, block, BYTES) == BYTES && calls.direct == 1 && calls.last_address == block,
          "an aligned block is not copied");
    check(weir_write(s, block + 512, BYTES + 100) == BYTES + 100, "write of whole blocks and a tail");
    check(calls.direct == 2 && calls.last_address == block + 512 && calls.plain == 0, "the tail is pending");
    check(weir__pending(s) < 4096, "%zu bytes pending", (size_t)weir__pending(s));
    check(weir_flush(s) == 0 && weir_seek(s, 0, SEEK_SET) == 0, "flush and seek");
    check(weir_write(s, block + 1, BYTES) == BYTES, "write from an unaligned address");
    check(calls.last_address >= (void *)weir__config(s)->buffer &&
              calls.last_address < (void *)(weir__config(s)->buffer + 131072),
          "an unaligned block is copied to the buffer");
    check(weir_seek(s, 0, SEEK_SET) == 0, "seek to the start");
    memset(&calls, 0, sizeof calls);
    check(weir_read(s, block, BYTES) == BYTES && calls.last_address == block && calls.reads == 1,
          "read into the caller's memory");
    check(weir_read(s, block + 1, BYTES) == BYTES, "read to an unaligned address");
    check(weir_close(s) == 0, "close");
    free(block);
}

static void lines_are_read_in_whole_buffers(void)
{
    fill_file(0);
    weir_stream *s = open_file(O_WRONLY, (struct weir_options){0});
    size_t bytes = put_lines(s, 4 << 20), got_bytes = 0;
    check(weir_close(s) == 0, "close");
    s = open_file(O_RDONLY, (struct weir_options){0});
    check(weir_seek(s, 1001, SEEK_SET) == 1001, "seek to an unaligned position");
    calls.read_buffer = weir__config(s)->read_buffer;
    calls.read_buffer_bytes = weir__config(s)->read_mapped;
    char *line;
    ssize_t got;
    while ((got = weir_getrec(s, &line)) > 0)
        got_bytes += (size_t)got;
    check(got == 0 && got_bytes == bytes - 1001, "%zu of %zu", got_bytes, bytes - 1001);
    check(calls.reads <= bytes / 131072 + 4, "%u reads", calls.reads);
    check(calls.reads_elsewhere <= 2,
          "%u reads into other memory", calls.reads_elsewhere); /* at the unaligned end of the file */
    check(weir_close(s) == 0, "close");
}

static void a_file_that_grows(void)
{
    char *from;
    fill_file(1000);
    weir_stream *s = open_file(O_RDONLY, (struct weir_options){0});
    check(weir_peek(s, &from, 5000) == 1000 && weir_skip(s, 1000) == 1000 && weir_getc(s) == WEIR_EOF,
          "read to the end");
    int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    check(write(fd, "more", 4) == 4, "append to the file");
    close(fd);
    weir_clear(s);
    check(weir_peek(s, &from, 10) == 4 && memcmp(from, "more", 4) == 0, "read the appended bytes");
    check(weir_close(s) == 0, "close");
}

static void bounded_delay(void)
{
    struct model m;
    fill_file(0);
    model_init(&m, false);
    weir_stream *s = open_file(O_WRONLY, (struct weir_options){.stale_ms = 30, .buffer_bytes = 8192});
    for (int i = 0; i < 40; i++) {
        char text[700];
        struct random r = random_from((uint64_t)i);
        model_text(&r, text, sizeof text);
        check(weir_write(s, text, sizeof text) == sizeof text, "write");
        model_write(&m, text, sizeof text);
        if (i % 10 == 9) {
            sleep_seconds(CHECK_SANITIZED ? 0.4 : 0.2);
            model_matches_file(&m, path);
        }
    }
    check(weir_close(s) == 0, "close");
    model_matches_file(&m, path);
    model_free(&m);
}

static void flags_and_locks_are_kept(void)
{
    struct flock lock = {.l_type = F_WRLCK};
    weir_stream *s = NULL;
    struct weir_options options = {.flags = WEIR_DIRECT | WEIR_KEEP_OPEN};
    fill_file(0);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    check(fcntl(fd, F_SETLK, &lock) == 0 && weir_fdopen(&s, fd, &options) == 0 && is_direct(fd),
          "weir_fdopen sets O_DIRECT");
    put_lines(s, 10000);
    check(weir_flush(s) == 0, "flush");
    pid_t child = fork();
    if (child == 0) {
        lock.l_type = F_WRLCK;
        _exit(fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type == F_UNLCK);
    }
    int status;
    check(waitpid(child, &status, 0) == child && status == 0, "a flush has dropped the lock");
    check(weir_close(s) == 0 && !is_direct(fd), "close restores the flags");
    close(fd);
}

static void a_child_that_closes_leaves_the_flags(void)
{
    weir_stream *s = NULL;
    struct weir_options options = {.flags = WEIR_DIRECT | WEIR_KEEP_OPEN};
    int status;
    fill_file(0);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    check(weir_fdopen(&s, fd, &options) == 0 && is_direct(fd), "weir_fdopen sets O_DIRECT");
    pid_t child = fork();
    if (child == 0)
        _exit(weir_close(s) != 0);
    check(waitpid(child, &status, 0) == child && status == 0, "the child ended with %x", (unsigned)status);
    check(is_direct(fd), "the child has switched O_DIRECT off");
    check(weir_close(s) == 0 && !is_direct(fd), "close restores the flags");
    close(fd);
}

static void unsupported_files_are_refused(void)
{
    weir_stream *s;
    struct weir_options options = {.flags = WEIR_DIRECT};
    int pipes[2], fd;
    char small[4096];
    check(pipe(pipes) == 0 && weir_fdopen(&s, pipes[1], &options) == -EINVAL, "a pipe is refused");
    check(!is_direct(pipes[1]), "the pipe's flags are unchanged");
    close(pipes[0]);
    close(pipes[1]);
    options.buffer = small + 1;
    options.buffer_bytes = sizeof small - 1;
    fill_file(0);
    check(weir_open(&s, path, O_WRONLY, &options) == -EINVAL, "a caller's buffer smaller than a page is refused");
    fd = open("/dev/shm/weir-direct-rules", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    options.buffer = NULL;
    int result = weir_fdopen(&s, fd, &options);
    check(result == 0 || result == -EINVAL, "tmpfs: %d", result);
    if (result == 0)
        check(put_lines(s, 10000) > 0 && weir_close(s) == 0, "tmpfs with O_DIRECT");
    else
        close(fd);
    unlink("/dev/shm/weir-direct-rules");
}

int main(void)
{
    bool has_direct = direct_calls_install();
#define TEST(call) check_begin(#call); call
    TEST(unsupported_files_are_refused());
    if (!has_direct) {
        check_begin("all other tests");
        check_skip("this file system does not support O_DIRECT");
        return check_finish("direct_rules");
    }
    TEST(whole_buffers_are_direct());
    TEST(a_flush_costs_one_page());
    TEST(large_blocks_are_not_copied());
    TEST(lines_are_read_in_whole_buffers());
    TEST(a_file_that_grows());
    TEST(bounded_delay());
    TEST(flags_and_locks_are_kept());
    TEST(a_child_that_closes_leaves_the_flags());
    return check_finish("direct_rules");
}
