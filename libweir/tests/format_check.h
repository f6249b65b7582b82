/* format_check.h: shared by the tests of formatting: counting of checks, seeded random values, the two calls. */
#ifndef WEIR_FORMAT_CHECK_H
#define WEIR_FORMAT_CHECK_H

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format.h"

#if defined(__GNUC__)
#define MAY_BE_UNUSED __attribute__((unused))
#else
#define MAY_BE_UNUSED
#endif

/* The address sanitizer checks formats, too, and would end the program at those that it does not know. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "check_printf=0";
}

/* ---- counts: a test is a begin and any number of expect, up to the next begin or finish ---- */

static struct {
    const char *test; /* current */
    uint64_t checked, wrong;
    unsigned passed, failed, skipped;
} counts;

static void end_test(void)
{
    if (!counts.test)
        return;
    bool ok = counts.wrong == 0 && counts.checked > 0;
    printf("%s: %s, %" PRIu64 " checks\n", counts.test, ok ? "ok" : "FAILED", counts.checked);
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
    printf("%s: skipped: %s\n", test, why);
    counts.skipped++;
}

/* Counts a check and returns `ok`. Prints the message of the first failed checks of a test. */
#define expect(ok, ...) expect_at((ok), __LINE__, __VA_ARGS__)
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
MAY_BE_UNUSED static bool expect_at(bool ok, int line, const char *message, ...)
{
    counts.checked++;
    if (ok || ++counts.wrong > 5)
        return ok;
    va_list arguments;
    va_start(arguments, message);
    printf("%s, line %d: ", counts.test, line);
    vprintf(message, arguments);
    printf("\n");
    va_end(arguments);
    return false;
}

static int finish(const char *name)
{
    end_test();
    printf("%s: %u passed, %u failed, %u skipped\n", name, counts.passed, counts.failed, counts.skipped);
    return counts.failed > 0 || counts.passed == 0;
}

/* ---- random values: argv[1] or WEIR_TEST_SEED is the seed, argv[2] or WEIR_TEST_ROUNDS the rounds ---- */

static uint64_t random_state;

MAY_BE_UNUSED static uint64_t random_bits(void)
{
    uint64_t z = random_state += UINT64_C(0x9e3779b97f4a7c15); /* SplitMix64 */
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

MAY_BE_UNUSED static unsigned below(unsigned limit)
{
    return (unsigned)((random_bits() >> 32) * limit >> 32);
}

MAY_BE_UNUSED static uint64_t set_up_random(int argc, char **argv, uint64_t rounds)
{
    const char *seed = argc > 1 ? argv[1] : getenv("WEIR_TEST_SEED");
    const char *wanted = argc > 2 ? argv[2] : getenv("WEIR_TEST_ROUNDS");
    random_state = seed && *seed ? strtoull(seed, NULL, 0) : 20250722;
    if (wanted && *wanted)
        rounds = strtoull(wanted, NULL, 0);
    printf("seed %" PRIu64 ", %" PRIu64 " rounds\n", random_state, rounds);
    return rounds;
}

MAY_BE_UNUSED static double double_of(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Returns a value halfway between two decimals of this precision: k + 0.5, k.25, k.125 … */
MAY_BE_UNUSED static double random_tie(int precision)
{
    double odd = (double)(random_bits() >> (12 + below(52)) | 1);
    double value = ldexp(odd, -precision - 1);
    return below(2) ? -value : value;
}

/* Returns a value of one of the kinds for which the code has separate branches. */
MAY_BE_UNUSED static double random_double(void)
{
    static const double special[] = {0, 1, 9.5, 0.5, 1e15, 1e17, 1e22, 1e23, 0x1p53, 0x1p63, 0x1p64, 5e-324,
                                     0x1p-1022, 0x1.fffffffffffffp1023, INFINITY, NAN, 0.1, 0.3, 2.5, 0.125};
    double value;
    switch (below(9)) {
    case 0: return double_of(random_bits());
    case 1: value = (double)(int64_t)(random_bits() >> below(64)) / pow(10, below(10)); break; /* 25.5 */
    case 2: return random_tie((int)below(20));
    case 3: value = ldexp(1, (int)below(2098) - 1074); break;
    case 4: value = pow(10, (int)below(632) - 323); break;
    case 5: value = double_of(random_bits() >> (12 + below(52))); break; /* subnormal */
    case 6: value = special[below(sizeof special / sizeof *special)]; break;
    case 7: value = (double)below(1000000) / 1000; break;
    default: value = double_of((uint64_t)(1023 - 70 + below(140)) << 52 | random_bits() >> 12); break;
    }
    if (below(8) == 0 && isfinite(value)) /* a neighbour */
        value = nextafter(value, below(2) ? INFINITY : -INFINITY);
    return below(2) ? -value : value;
}

/* ---- the two calls ---- */

MAY_BE_UNUSED static ssize_t weir_format(char *to, size_t room, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    ssize_t bytes = weir__vformat(to, room, format, arguments);
    va_end(arguments);
    return bytes;
}

/* Formats with the C library. Returns its result as weir__vformat returns its own: -errno on errors. */
MAY_BE_UNUSED static ssize_t libc_format(char *to, size_t room, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    ssize_t bytes = vsnprintf(to, room, format, arguments);
    if (bytes < 0)
        bytes = -errno;
    va_end(arguments);
    return bytes;
}

#endif /* WEIR_FORMAT_CHECK_H */
