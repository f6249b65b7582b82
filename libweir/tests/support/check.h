/* check.h: shared by all tests: counting of checks, seeded random numbers, threads, time. */
#ifndef WEIR_TESTS_CHECK_H
#define WEIR_TESTS_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#if defined(__GNUC__)
#define CHECK_PRINTF(at) __attribute__((format(printf, at, at + 1)))
#else
#define CHECK_PRINTF(at)
#endif

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define CHECK_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define CHECK_SANITIZED 1
#endif
#endif
#ifndef CHECK_SANITIZED
#define CHECK_SANITIZED 0
#endif

/* Begins a test; the next check_begin or check_finish ends it. A test passes if it made at least one check and none
 * failed. */
void check_begin(const char *format, ...) CHECK_PRINTF(1);
/* Counts a check and returns `ok`. Prints the message of the first failed checks of a test. */
bool check(bool ok, const char *format, ...) CHECK_PRINTF(2);
/* Marks the current test as skipped. */
void check_skip(const char *reason);
/* Returns the number of failed checks of the current test. */
uint64_t check_wrong(void);
/* Prints the last line; returns the exit status. */
int check_finish(const char *program);

/* Returns the number of the option `--NAME=N` or `--NAME N`, or of the environment variable WEIR_TEST_NAME, else
 * `fallback`. */
uint64_t check_option(int count, char **arguments, const char *name, uint64_t fallback);

/* Returns true if $WEIR_CAMPAIGN is "quick": a test over many cases then runs a subset in which each kind occurs. */
bool check_quick(void);

struct random {
    uint64_t state;
};
struct random random_from(uint64_t seed);
uint64_t random_next(struct random *r);
uint64_t random_below(struct random *r, uint64_t limit);

/* Returns a descriptor of a new unlinked file, on tmpfs if possible. */
int nameless_file(void);
/* Returns the size of an open file, or -1 on failure. */
off_t size_of(int fd);
/* Runs `work` in `count` threads, at most 64, with the numbers 0 to count - 1; returns when all have ended. */
void in_threads(int count, void *(*work)(void *number));

double seconds_now(void);
void sleep_seconds(double seconds);

#endif /* WEIR_TESTS_CHECK_H */
