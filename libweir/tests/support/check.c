/* check.c: counting what passed, random numbers, options, threads and the time, for all tests. */
#include "check.h"

#include <ctype.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SAID_AT_MOST = 5 };

static struct {
    char test[200];
    bool running, skipped;
    uint64_t checked, wrong;
    unsigned passed, failed, left_out;
} counts;

static void end_test(void)
{
    if (!counts.running)
        return;
    counts.running = false;
    if (counts.skipped) {
        counts.left_out++;
        return;
    }
    bool well = counts.wrong == 0 && counts.checked > 0;
    printf("%s: %s, %" PRIu64 " checks\n", counts.test, well ? "ok" : "FAILED", counts.checked);
    if (counts.wrong > SAID_AT_MOST)
        printf("  and %" PRIu64 " more\n", counts.wrong - SAID_AT_MOST);
    fflush(stdout);
    counts.passed += well;
    counts.failed += !well;
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

bool check(bool well, const char *format, ...)
{
    counts.checked++;
    if (well || ++counts.wrong > SAID_AT_MOST)
        return well;
    va_list arguments;
    printf("%s: wrong: ", counts.test);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n");
    fflush(stdout); /* a child that is forked later must not print it again */
    return well;
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
    printf("%s: %u passed, %u failed, %u skipped\n", program, counts.passed, counts.failed, counts.left_out);
    fflush(stdout);
    return counts.failed ? 1 : 0;
}

uint64_t check_option(int count, char **arguments, const char *name, uint64_t otherwise)
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
    return value ? strtoull(value, NULL, 0) : otherwise;
}

/* splitmix64: every seed gives a sequence of its own, also 0 and neighbours. */
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
