/* check.h: counting of checks (begin, expect …, finish) and files, without stdio and without libweir. */
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
    int out; /* descriptor of the report: tests close and redirect 1 and 2 */
} counts = {.out = 1};

static void end_test(void)
{
    if (!counts.test)
        return;
    bool ok = counts.wrong == 0 && counts.checked > 0;
    dprintf(counts.out, "%s: %s, %llu checks\n", counts.test, ok ? "ok" : "FAILED", (unsigned long long)counts.checked);
    counts.passed += ok;
    counts.failed += !ok;
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

#define expect(condition) expect_at((condition) != 0, 1, __LINE__, #condition)
#define expect_equal(is, should) expect_at((int64_t)(is), (int64_t)(should), __LINE__, #is " == " #should)
#define expect_text(is, should) expect_text_at((is), (should), __LINE__, #is)

static bool expect_at(int64_t is, int64_t should, int line, const char *expression)
{
    int error = errno;
    bool ok = is == should;
    counts.checked++;
    if (!ok && ++counts.wrong <= 8)
        dprintf(counts.out, "%s, line %d: not true: %s (%lld, %lld; errno %d)\n", counts.test, line, expression,
                (long long)is, (long long)should, error);
    errno = error;
    return ok;
}

MAY_BE_UNUSED static bool expect_text_at(const char *is, const char *should, int line, const char *expression)
{
    bool ok = is && strcmp(is, should) == 0;
    if (!expect_at(ok, 1, line, expression))
        dprintf(counts.out, "  is: \"%.300s\"\n  should be: \"%.300s\"\n", is ? is : "(null)", should);
    return ok;
}

static int finish(const char *name)
{
    end_test();
    dprintf(counts.out, "%s: %u passed, %u failed, %u skipped\n", name, counts.passed, counts.failed, counts.skipped);
    return counts.failed > 0 || counts.passed == 0;
}

/* ---- files in the test's directory -------------------------------------------------------------------- */

static char directory[64];

MAY_BE_UNUSED static void make_directory(void)
{
    strcpy(directory, access("/dev/shm", W_OK) == 0 ? "/dev/shm/weir-stdio-XXXXXX" : "/tmp/weir-stdio-XXXXXX");
    if (!mkdtemp(directory)) {
        dprintf(counts.out, "cannot make a directory for files\n");
        _exit(2);
    }
}

MAY_BE_UNUSED static void remove_directory(void)
{
    char command[128] = "rm -r ";
    strcat(command, directory);
    if (system(command) != 0)
        dprintf(counts.out, "cannot remove %s\n", directory);
}

/* Returns the path of a file in the directory, valid until eight further calls. */
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

/* Returns the content of the file, "" if it cannot be opened; valid until the next call. */
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
