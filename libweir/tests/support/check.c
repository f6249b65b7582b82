/* check.c: counting of checks, random numbers, options, threads and time, for all tests. */
#include "check.h"

#include <ctype.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MESSAGES_MAX = 5 };

static struct {
    char test[200];
    bool running, skipped;
    uint64_t checked, wrong;
    unsigned passed, failed, tests_skipped;
} counts;

static void end_test(void)
{
    if (!counts.running)
        return;
    counts.running = false;
    if (counts.skipped) {
        counts.tests_skipped++;
        return;
    }
    bool ok = counts.wrong == 0 && counts.checked > 0;
    printf("%s: %s, %" PRIu64 " checks\n", counts.test, ok ? "ok" : "FAILED", counts.checked);
    if (counts.wrong > MESSAGES_MAX)
        printf("  and %" PRIu64 " more failed checks\n", counts.wrong - MESSAGES_MAX);
    fflush(stdout);
    counts.passed += ok;
    counts.failed += !ok;
}

void check_begin(const char *format, ...)
{
    va_list arguments;
    end_test();
    va_start(arguments, format);
    vsnprintf(counts.test, sizeof counts.test, format, arguments);
    va_end(arguments);
    counts.running = true;
    counts.skipped = false;
    counts.checked = counts.wrong = 0;
}

bool check(bool ok, const char *format, ...)
{
    counts.checked++;
    if (ok || ++counts.wrong > MESSAGES_MAX)
        return ok;
    va_list arguments;
    printf("%s: wrong: ", counts.test);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n");
    fflush(stdout); /* a child that is forked later must not print it again */
    return ok;
}

void check_skip(const char *reason)
{
    printf("%s: skipped: %s\n", counts.test, reason);
    fflush(stdout);
    counts.skipped = true;
}

uint64_t check_wrong(void) { return counts.wrong; }

int check_finish(const char *program)
{
    end_test();
    printf("%s: %u passed, %u failed, %u skipped\n", program, counts.passed, counts.failed, counts.tests_skipped);
    fflush(stdout);
    return counts.failed ? 1 : 0;
}

uint64_t check_option(int count, char **arguments, const char *name, uint64_t fallback)
{
    char variable[64] = "WEIR_TEST_";
    size_t length = strlen(name);
    for (int i = 1; i < count; i++) {
        const char *argument = arguments[i];
        if (strncmp(argument, "--", 2) != 0 || strncmp(argument + 2, name, length) != 0)
            continue;
        if (argument[2 + length] == '=')
            return strtoull(argument + 3 + length, NULL, 0);
        if (argument[2 + length] == '\0' && i + 1 < count)
            return strtoull(arguments[i + 1], NULL, 0);
    }
    for (size_t i = 0; i <= length; i++)
        variable[10 + i] = (char)toupper((unsigned char)name[i]);
    const char *value = getenv(variable);
    return value ? strtoull(value, NULL, 0) : fallback;
}

bool check_quick(void)
{
    const char *extent = getenv("WEIR_CAMPAIGN");
    return extent && strcmp(extent, "quick") == 0;
}

/* splitmix64: different seeds give different sequences, also 0 and consecutive numbers. */
struct random random_from(uint64_t seed) { return (struct random){seed * UINT64_C(0x9e3779b97f4a7c15) + 1}; }

uint64_t random_next(struct random *r)
{
    uint64_t z = r->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

uint64_t random_below(struct random *r, uint64_t limit) { return random_next(r) % limit; }

int nameless_file(void)
{
    char path[] = "/dev/shm/weir-test-XXXXXX", other[] = "/tmp/weir-test-XXXXXX", *name = path;
    int fd = mkstemp(path);
    if (fd < 0)
        fd = mkstemp(name = other);
    if (fd < 0)
        abort();
    unlink(name);
    return fd;
}

off_t size_of(int fd)
{
    struct stat status;
    return fstat(fd, &status) == 0 ? status.st_size : -1;
}

void in_threads(int count, void *(*work)(void *number))
{
    pthread_t threads[64];
    for (intptr_t i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)i) != 0)
            abort();
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

void sleep_seconds(double seconds)
{
    struct timespec time = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    while (nanosleep(&time, &time) != 0)
        ;
}
