/* direct_rules.c: WEIR_DIRECT: what goes around the page cache, and what does not. */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/direct_watch.h"

static void whole_buffers_go_directly(void)
{
    size_t odd[] = {0, 1, 511, 512, 5000}, bytes;
    for (int i = 0; i < 5; i++) {
        fill_file(odd[i]);
        weir_stream *s = open_file(O_WRONLY | O_APPEND, (struct weir_options){0});
        bytes = put_lines(s, 4 << 20);
        check(weir_close(s) == 0, "close");
        check(seen.direct_bytes + 2 * 4096 > bytes, "of %zu bytes %zu directly", bytes, (size_t)seen.direct_bytes);
        check(seen.plain <= 2, "%u writes through the cache", seen.plain);
        check(seen.direct <= bytes / 131072 + 3, "%u direct writes", seen.direct);
        check(cached_pages() <= 3, "%zu pages in the cache", cached_pages());
        check(file_size() == odd[i] + bytes, "%zu bytes", file_size());
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
    check(seen.plain <= 8 && seen.plain_bytes <= 8 * 4096, "%u, %zu bytes", seen.plain, (size_t)seen.plain_bytes);
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
    check(weir_write(s, block, BYTES) == BYTES && seen.direct == 1 && seen.last == block, "as it lies");
    check(weir_write(s, block + 512, BYTES + 100) == BYTES + 100, "with a tail");
    check(seen.direct == 2 && seen.last == block + 512 && seen.plain == 0, "whose tail waits");
    check(weir__pending(s) < 4096, "%zu wait", (size_t)weir__pending(s));
    check(weir_flush(s) == 0 && weir_seek(s, 0, SEEK_SET) == 0, "back");
    check(weir_write(s, block + 1, BYTES) == BYTES, "from an odd address");
    check(seen.last >= (void *)weir__config(s)->buffer &&
              seen.last < (void *)(weir__config(s)->buffer + 131072),
          "by the buffer");
    check(weir_seek(s, 0, SEEK_SET) == 0, "to the start");
    memset(&seen, 0, sizeof seen);
    check(weir_read(s, block, BYTES) == BYTES && seen.last == block && seen.reads == 1, "read to where it is wanted");
    check(weir_read(s, block + 1, BYTES) == BYTES, "to an odd address");
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
    check(weir_seek(s, 1001, SEEK_SET) == 1001, "to an odd place");
    seen.buffer = weir__config(s)->read_buffer;
    seen.buffer_bytes = weir__config(s)->read_mapped;
    char *line;
    ssize_t got;
    while ((got = weir_getrec(s, &line)) > 0)
        got_bytes += (size_t)got;
    check(got == 0 && got_bytes == bytes - 1001, "%zu of %zu", got_bytes, bytes - 1001);
    check(seen.reads <= bytes / 131072 + 4, "%u reads", seen.reads);
    check(seen.elsewhere <= 2, "%u by way of a copy", seen.elsewhere); /* at the odd end of the file */
    check(weir_close(s) == 0, "close");
}

static void a_file_that_grows(void)
{
    char *from;
    fill_file(1000);
    weir_stream *s = open_file(O_RDONLY, (struct weir_options){0});
    check(weir_peek(s, &from, 5000) == 1000 && weir_skip(s, 1000) == 1000 && weir_getc(s) == WEIR_EOF, "to its end");
    int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    check(write(fd, "more", 4) == 4, "more");
    close(fd);
    weir_clear(s);
    check(weir_peek(s, &from, 10) == 4 && memcmp(from, "more", 4) == 0, "and behind it");
    check(weir_close(s) == 0, "close");
}

static void bounded_delay(void)
{
    struct model m;
    fill_file(0);
    model_make(&m, false);
    weir_stream *s = open_file(O_WRONLY, (struct weir_options){.stale_ms = 30, .buffer_bytes = 8192});
    for (int i = 0; i < 40; i++) {
        char text[700];
        struct random r = random_from((uint64_t)i);
        model_text(&r, text, sizeof text);
        check(weir_write(s, text, sizeof text) == sizeof text, "write");
        model_write(&m, text, sizeof text);
        if (i % 10 == 9) {
            sleep_seconds(CHECK_SANITIZED ? 0.4 : 0.2);
            model_is_in(&m, path);
        }
    }
    check(weir_close(s) == 0, "close");
    model_is_in(&m, path);
    model_free(&m);
}

static void flags_and_locks_stay(void)
{
    struct flock lock = {.l_type = F_WRLCK};
    weir_stream *s = NULL;
    struct weir_options options = {.flags = WEIR_DIRECT | WEIR_KEEP_OPEN};
    fill_file(0);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    check(fcntl(fd, F_SETLK, &lock) == 0 && weir_fdopen(&s, fd, &options) == 0 && is_direct(fd), "direct now");
    put_lines(s, 10000);
    check(weir_flush(s) == 0, "flush");
    pid_t child = fork();
    if (child == 0) {
        lock.l_type = F_WRLCK;
        _exit(fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type == F_UNLCK);
    }
    int status;
    check(waitpid(child, &status, 0) == child && status == 0, "a flush has dropped the lock");
    check(weir_close(s) == 0 && !is_direct(fd), "as it was");
    close(fd);
}

static void what_cannot_be_direct(void)
{
    weir_stream *s;
    struct weir_options options = {.flags = WEIR_DIRECT};
    int pipes[2], fd;
    char small[4096];
    check(pipe(pipes) == 0 && weir_fdopen(&s, pipes[1], &options) == -EINVAL, "a pipe");
    check(!is_direct(pipes[1]), "and it was left as it was");
    close(pipes[0]);
    close(pipes[1]);
    options.buffer = small + 1;
    options.buffer_bytes = sizeof small - 1;
    fill_file(0);
    check(weir_open(&s, path, O_WRONLY, &options) == -EINVAL, "less than a page of the caller's");
    fd = open("/dev/shm/weir-direct-rules", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    options.buffer = NULL;
    int result = weir_fdopen(&s, fd, &options);
    check(result == 0 || result == -EINVAL, "tmpfs: %d", result);
    if (result == 0)
        check(put_lines(s, 10000) > 0 && weir_close(s) == 0, "which takes it");
    else
        close(fd);
    unlink("/dev/shm/weir-direct-rules");
}

int main(void)
{
    bool has_direct = direct_watch();
#define TEST(call) check_begin(#call); call
    TEST(what_cannot_be_direct());
    if (!has_direct) {
        check_begin("the rest");
        check_skip("this file system's files are not for O_DIRECT");
        return check_finish("direct_rules");
    }
    TEST(whole_buffers_go_directly());
    TEST(a_flush_costs_one_page());
    TEST(large_blocks_are_not_copied());
    TEST(lines_are_read_in_whole_buffers());
    TEST(a_file_that_grows());
    TEST(bounded_delay());
    TEST(flags_and_locks_stay());
    return check_finish("direct_rules");
}
