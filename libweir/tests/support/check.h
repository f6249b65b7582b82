/* check.h: what the tests share: counting, a seeded random number, the time. */
#ifndef WEIR_TESTS_CHECK_H
#define WEIR_TESTS_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* A test begins; it ends with the next one, or with check_finish. It passes if something was expected of it
 * and nothing was wrong. */
void check_begin(const char *format, ...) CHECK_PRINTF(1);
/* Returns `well`; if not, says what was wrong (the first few times). */
bool check(bool well, const char *format, ...) CHECK_PRINTF(2);
/* The test that runs, and why it cannot be run here. */
void check_skip(const char *reason);
/* How often something was wrong in the test that runs. */
uint64_t check_wrong(void);
/* Prints the last line; returns the exit status. */
int check_finish(const char *program);

/* A number given as `--NAME=N`, `--NAME N` or in the environment as WEIR_TEST_NAME, else `otherwise`. */
uint64_t check_option(int count, char **arguments, const char *name, uint64_t otherwise);

struct random {
    uint64_t state;
};
struct random random_from(uint64_t seed);
uint64_t random_next(struct random *r);
uint64_t random_below(struct random *r, uint64_t limit);

/* An open file without a name, in memory where that can be. */
int nameless_file(void);
/* `count` threads, at most 64, each with its number; returns when all have. */
void in_threads(int count, void *(*work)(void *number));

double seconds_now(void);
/* For shorter waits than a second as well. */
void sleep_seconds(double seconds);

#endif /* WEIR_TESTS_CHECK_H */
