/* check.h: tests and their counts, with no stream of either kind: begin, expect …, finish. */
#ifndef WEIR_TEST_CHECK_H
#define WEIR_TEST_CHECK_H

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__GNUC__)
#define MAY_BE_UNUSED __attribute__((unused))
#else
#define MAY_BE_UNUSED
#endif

#if defined(__SANITIZE_THREAD__)
#define WITH_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WITH_TSAN 1
#endif
#endif
#ifndef WITH_TSAN
#define WITH_TSAN 0
#endif

static struct {
    const char *test;
    uint64_t checked, wrong;
    unsigned passed, failed, skipped;
    int out; /* where the report goes: tests close and redirect 1 and 2 */
} counts = {.out = 1};

static void end_test(void)
{
    if (!counts.test)
        return;
    bool well = counts.wrong == 0 && counts.checked > 0;
    dprintf(counts.out, "%s: %s, %llu checks\n", counts.test, well ? "ok" : "FAILED", (unsigned long long)counts.checked);
    counts.passed += well;
    counts.failed += !well;
    counts.test = NULL;
}

static void begin(const char *test)
{
    end_test();
    counts.test = test;
    counts.checked = counts.wrong = 0;
}

MAY_BE_UNUSED static void skip(const char *test, const char *why)
{
    end_test();
    dprintf(counts.out, "%s: skipped: %s\n", test, why);
    counts.skipped++;
}

#define expect(right) expect_at((right) != 0, 1, __LINE__, #right)
#define expect_equal(is, should) expect_at((int64_t)(is), (int64_t)(should), __LINE__, #is " == " #should)
#define expect_text(is, should) expect_text_at((is), (should), __LINE__, #is)

static bool expect_at(int64_t is, int64_t should, int line, const char *what)
{
    int error = errno;
    bool right = is == should;
    counts.checked++;
    if (!right && ++counts.wrong <= 8)
        dprintf(counts.out, "%s, line %d: not so: %s (%lld, %lld; errno %d)\n", counts.test, line, what, (long long)is,
                (long long)should, error);
    errno = error;
    return right;
}

MAY_BE_UNUSED static bool expect_text_at(const char *is, const char *should, int line, const char *what)
{
    bool right = is && strcmp(is, should) == 0;
    if (!expect_at(right, 1, line, what))
        dprintf(counts.out, "  is: \"%.300s\"\n  should be: \"%.300s\"\n", is ? is : "(null)", should);
    return right;
}

static int finish(const char *name)
{
    end_test();
    dprintf(counts.out, "%s: %u passed, %u failed, %u skipped\n", name, counts.passed, counts.failed, counts.skipped);
    return counts.failed > 0 || counts.passed == 0;
}

/* ---- files in a directory of the test's own ----------------------------------------------------------- */

static char directory[64];

MAY_BE_UNUSED static void make_directory(void)
{
    strcpy(directory, access("/dev/shm", W_OK) == 0 ? "/dev/shm/weir-stdio-XXXXXX" : "/tmp/weir-stdio-XXXXXX");
    if (!mkdtemp(directory)) {
        dprintf(counts.out, "no directory for files\n");
        _exit(2);
    }
}

MAY_BE_UNUSED static void remove_directory(void)
{
    char command[128] = "rm -r ";
    strcat(command, directory);
    if (system(command) != 0)
        dprintf(counts.out, "%s is left\n", directory);
}

/* The path of a name in it; eight may be in use at a time. */
MAY_BE_UNUSED static const char *in_directory(const char *name)
{
    static char paths[8][128];
    static unsigned next;
    char *path = paths[next++ % 8];
    strcpy(path, directory);
    strcat(path, "/");
    strcat(path, name);
    return path;
}

MAY_BE_UNUSED static void put_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        dprintf(counts.out, "cannot make %s\n", path);
    close(fd);
}

/* What is in the file now, as a string; valid until the next call. */
MAY_BE_UNUSED static const char *file_text(const char *path)
{
    static char text[1 << 20];
    int fd = open(path, O_RDONLY);
    ssize_t bytes = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    close(fd);
    text[bytes < 0 ? 0 : bytes] = '\0';
    return text;
}

MAY_BE_UNUSED static off_t file_bytes(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 ? status.st_size : -1;
}

#endif
