/* direct_faults.c: WEIR_DIRECT with full disks, file size limits, refused writes and other processes: no byte is lost
 * or doubled. */
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/direct_calls.h"

static void file_size_limit(void)
{
    struct rlimit was, limit;
    fill_file(0);
    getrlimit(RLIMIT_FSIZE, &was);
    limit = was;
    limit.rlim_cur = 100001;
    signal(SIGXFSZ, SIG_IGN);
    weir_stream *s = open_file(O_WRONLY, (struct weir_options){.buffer_bytes = 65536});
    size_t bytes = put_lines(s, 60000);
    setrlimit(RLIMIT_FSIZE, &limit);
    bytes += put_lines(s, 60000);
    struct weir_stats stats;
    int result = weir_flush(s);
    weir_get_stats(s, &stats);
    setrlimit(RLIMIT_FSIZE, &was);
    check(result == -EFBIG && stats.pending_bytes == bytes - 100001, "%d, %zu of %zu bytes pending", result,
          (size_t)stats.pending_bytes, bytes);
    weir_clear(s);
    check(weir_close(s) == 0 && cached_pages() > 0, "close writes the rest, through the page cache");
    check(file_size() == bytes, "%zu bytes of %zu", file_size(), bytes);
}

static void errors_keep_pending_bytes(void)
{
    struct model m;
    static const int errors[] = {EIO, ENOSPC, EINVAL};
    for (int i = 0; i < 3; i++) {
        fill_file(0);
        model_init(&m, false);
        weir_stream *s = open_file(O_WRONLY, (struct weir_options){.buffer_bytes = 8192});
        calls.direct_errno = errors[i];
        int result = 0;
        for (int k = 0; k < 100000 && result >= 0; k++) {
            char c = (char)('a' + k % 23);
            if ((result = weir_putc(s, c)) >= 0)
                model_write(&m, &c, 1);
        }
        if (errors[i] == EINVAL) /* as a device that needs more alignment than it reports: all go through the cache */
            check(result >= 0 && calls.direct == 0 && calls.plain_bytes > 90000, "%d", result);
        else
            check(result == -errors[i] && weir_flush(s) == -errors[i], "%d", result);
        calls.direct_errno = 0;
        weir_clear(s);
        check(weir_close(s) == 0, "close");
        model_matches_file(&m, path);
        model_free(&m);
    }
}

static void full_disk(void)
{
    const char *why, *disk = test_dir_mount("ext4", 16 << 20, "-O ^has_journal", &why);
    char filler[320];
    if (!disk) {
        check_skip(why);
        return;
    }
    snprintf(path, sizeof path, "%s/file", disk);
    snprintf(filler, sizeof filler, "%s/filler", disk);
    int fd = open(filler, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    check(posix_fallocate(fd, 0, 8 << 20) == 0, "cannot fill half of the disk");
    close(fd);
    struct model m;
    model_init(&m, false);
    fill_file(0);
    weir_stream *s = open_file(O_WRONLY, (struct weir_options){.buffer_bytes = 65536});
    struct random r = random_from(5);
    char text[1000];
    ssize_t written = 0;
    while (written >= 0 && m.size < 12 << 20) {
        model_text(&r, text, sizeof text);
        written = weir_write(s, text, sizeof text);
        if (written > 0)
            model_write(&m, text, (size_t)written);
    }
    struct weir_stats stats;
    weir_get_stats(s, &stats);
    check(written == -ENOSPC && stats.pending_bytes > 0,
          "%zd, %zu bytes pending", written, (size_t)stats.pending_bytes);
    check(stats.pending_bytes + stats.written_bytes == m.size, "written and pending bytes are all accepted bytes");
    unlink(filler);
    weir_clear(s);
    check(weir_write(s, "the end", 7) == 7 && weir_close(s) == 0, "writes succeed when there is space again");
    model_write(&m, "the end", 7);
    model_matches_file(&m, path);
    model_free(&m);
    snprintf(path, sizeof path, "%s/file", test_dir);
}

static bool each_line_once(int writers, int lines)
{
    FILE *f = fopen(path, "r");
    char line[100];
    int found = 0, next[4] = {0}, writer, number;
    while (fgets(line, sizeof line, f)) {
        if (sscanf(line, "writer %d line %d.", &writer, &number) != 2 || writer >= writers || number != next[writer])
            break;
        next[writer]++;
        found++;
    }
    fclose(f);
    return check(found == writers * lines, "%d lines of %d", found, writers * lines);
}

/* A child writes at the same time: through a copy of the descriptor or, to lock the file, through its own. */
static void two_processes(int oflags, unsigned flags, bool flush_each)
{
    enum { LINES = 3000 };
    struct weir_options options = {.flags = flags, .buffer_bytes = flush_each ? 0 : 4096};
    options.mode = flags & WEIR_LOCK_FILE ? WEIR_RECORD : WEIR_FULL;
    fill_file(0);
    weir_stream *s = open_file(O_WRONLY | oflags, options);
    pid_t child = fork();
    if (child == 0 && flags & WEIR_LOCK_FILE) {
        weir_close(s);
        s = open_file(O_WRONLY | oflags, options);
    }
    for (int i = 0; i < LINES; i++) {
        weir_printf(s, "writer %d line %d.\n", child == 0, i);
        if (flush_each)
            weir_flush(s);
    }
    int result = weir_close(s), status;
    if (child == 0)
        _exit(result != 0);
    check(result == 0 && waitpid(child, &status, 0) == child && status == 0,
          "close returned %d, or the child failed", result);
    if (flush_each || flags & WEIR_LOCK_FILE)
        each_line_once(2, LINES);
    size_t bytes = 0;
    for (int i = 0; i < LINES; i++)
        bytes += 2 * (size_t)snprintf(NULL, 0, "writer 0 line %d.\n", i);
    check(file_size() == bytes, "%zu bytes of %zu", file_size(), bytes);
}

static void second_descriptor_was_replaced(void)
{
    char other[320];
    struct stat status;
    fill_file(0);
    snprintf(other, sizeof other, "%s/other", test_dir);
    weir_stream *s = open_file(O_WRONLY, (struct weir_options){0});
    size_t bytes = put_lines(s, 5000);
    check(weir_flush(s) == 0, "flush");
    int fd = open(other, O_RDWR | O_CREAT | O_CLOEXEC, 0600), second = fd - 1;
    check(second > weir_fd(s) && dup2(fd, second) == second, "the second descriptor is %d", second);
    bytes += put_lines(s, 5000);
    check(weir_close(s) == 0 && fcntl(second, F_GETFD) >= 0, "close");
    check(fstat(fd, &status) == 0 && status.st_size == 0, "%lld bytes went to another file", (long long)status.st_size);
    check(file_size() == bytes, "%zu bytes of %zu", file_size(), bytes);
    close(second);
    close(fd);
    unlink(other);
}

int main(void)
{
    bool has_direct = direct_calls_install();
#define TEST(call) check_begin(#call); call
    if (!has_direct) {
        check_begin("all tests");
        check_skip("this file system does not support O_DIRECT");
        return check_finish("direct_faults");
    }
    TEST(file_size_limit());
    TEST(errors_keep_pending_bytes());
    TEST(full_disk());
    TEST(two_processes(0, 0, true));
    TEST(two_processes(0, 0, false));
    TEST(two_processes(O_APPEND, 0, true));
    TEST(two_processes(O_APPEND, 0, false));
    TEST(two_processes(0, WEIR_LOCK_FILE, true));
    TEST(two_processes(0, WEIR_LOCK_FILE, false));
    TEST(second_descriptor_was_replaced());
    return check_finish("direct_faults");
}
