/* format_exact.c: weir__format_fixed is exact for every precision: compared with the C library's "%.*f", which is exact
 * in glibc and in musl, and with known texts. */
#include <fenv.h>
#include <limits.h>

#include "format_check.h"

#ifndef NAME
#define NAME "format_exact"
#endif

enum { ROOM = 2048 };

static char want[ROOM], have[ROOM];

static void compare(double value, int precision)
{
    size_t bytes = (size_t)snprintf(want, sizeof want, "%.*f", precision, value);
    memset(have, '?', sizeof have);
    size_t result = weir__format_fixed(have, sizeof have, value, precision);
    expect(result == bytes && memcmp(want, have, bytes) == 0 && have[bytes] == '?',
           "%a with %d digits: %zu \"%.*s\" instead of \"%s\"", value, precision, result, (int)result, have,
           want);
}

/* Compares every precision up to 340, and some beyond the last nonzero digit. */
static void every_precision(double value)
{
    for (int precision = 0; precision <= 340; precision++) {
        compare(value, precision);
        compare(-value, precision);
    }
    compare(value, 1073);
    compare(value, 1074);
    compare(value, 1075);
    compare(value, 1500);
}

static void edges(void)
{
    static const double values[] = {
        0, 1, 0.5, 1.5, 2.5, 9.5, 99.5, 0.05, 0.95, 0.995, 9.995, 99999.5, 0.1, 0.3, 1.0 / 3, 2.0 / 3,
        1e-5, 1e-17, 1e-18, 1e-19, 1e-20, 5e-20, 1e-300, 5e-324, 0x1p-1022, 0x1.fffffffffffffp-1023,
        0x1p-127, 0x1.8p-127, 0x1p-128, 0x1.8p-128, 0x1p-126, 0x1p-64, 0x1p-63, 0x1p-65,
        0x1.fffffffffffffp-64, 0x1p52, 0x1p53, 0x1p63, 0x1p64, 0x1p65, 0x1.fffffffffffffp63,
        0x1.fffffffffffffp64, 0x1.fffffffffffffp62, 4503599627370497.5, 4503599627370496.5,
        2251799813685248.25, 2251799813685249.75, 9007199254740991, 9007199254740994, 1e15, 1e16, 1e17,
        1e18, 1e19, 1e20, 1e22, 1e23, 1e100, 1e300, 0x1.fffffffffffffp1023, 999999999999999.875,
        0.999999999999999889, 0.99999999999999994, 9.9999999999999982, 123456789.987654321, INFINITY, NAN,
    };
    begin("edges with every precision");
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        every_precision(values[i]);
}

static void powers(void)
{
    begin("powers of two, their neighbours, and powers of ten");
    for (int power = -1074; power <= 1023; power++) {
        double value = ldexp(1, power);
        for (int precision = 0; precision <= 25; precision++) {
            compare(value, precision);
            compare(nextafter(value, 0), precision);
            compare(nextafter(value, INFINITY), precision);
        }
        compare(value * 1.5, 340);
    }
    for (int power = -323; power <= 308; power++)
        compare(pow(10, power), 30);
}

/* (2 k + 1) / 2^(p + 1) is halfway between two decimals with p digits and rounds to the even one. */
static void ties(uint64_t rounds)
{
    begin("ties");
    for (int precision = 0; precision <= 60; precision++)
        for (uint64_t i = 0; i < rounds / 60; i++) {
            double value = random_tie(precision);
            compare(value, precision);
            compare(nextafter(value, INFINITY), precision);
            compare(nextafter(value, -INFINITY), precision);
        }
}

static void random_values(uint64_t rounds)
{
    begin("random values");
    for (uint64_t i = 0; i < rounds; i++)
        compare(random_double(), (int)(below(4) ? below(22) : below(341)));
}

static void known(double value, int precision, const char *text)
{
    size_t bytes = weir__format_fixed(have, sizeof have, value, precision);
    bool right = bytes == strlen(text) && memcmp(have, text, bytes) == 0;
    expect(right, "%.*s instead of %s", (int)bytes, have, text);
}

static void known_values(void)
{
    char smallest[340] = "0.";
    memset(smallest + 2, '0', 323);
    strcpy(smallest + 2 + 323, "4940656");
    begin("known values");
    known(0.5, 0, "0");
    known(1.5, 0, "2");
    known(2.5, 0, "2");
    known(-0.5, 0, "-0");
    known(0.125, 2, "0.12");
    known(0.375, 2, "0.38");
    known(1.005, 2, "1.00");
    known(0.1, 20, "0.10000000000000000555");
    known(9.9999999, 6, "10.000000");
    known(-99.9999999, 6, "-100.000000");
    known(25.5, 1, "25.5");
    known(1e23, 0, "99999999999999991611392");
    known(5e-324, 330, smallest);
    known(INFINITY, 3, "inf");
    known(-INFINITY, 3, "-inf");
    known(NAN, 0, "nan");
    known(-NAN, 0, "-nan");
    known(1, -1, "1.000000");
}

/* If the buffer is one byte too small, the length is right and nothing is written. */
static void buffer_sizes(uint64_t rounds)
{
    begin("buffer sizes");
    for (uint64_t i = 0; i < rounds; i++) {
        double value = random_double();
        int precision = (int)below(i % 2 ? 400 : 20);
        size_t bytes = weir__format_fixed(NULL, 0, value, precision);
        memset(have, '?', sizeof have);
        size_t again = weir__format_fixed(have, bytes - 1, value, precision);
        bool untouched = have[0] == '?' && memcmp(have, have + 1, sizeof have - 1) == 0;
        expect(again == bytes && untouched, "%a .%d", value, precision);
        again = weir__format_fixed(have, bytes, value, precision);
        expect(again == bytes && have[bytes - 1] != '?' && have[bytes] == '?', "%a .%d", value, precision);
    }
    expect(weir__format_fixed(NULL, 0, -1, INT_MAX) == 3 + (size_t)INT_MAX, "the largest precision");
}

static void rounding_modes(uint64_t rounds)
{
    static const int modes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    begin("rounds to the nearest in every rounding mode of fesetround(3)");
    for (uint64_t i = 0; i < rounds; i++) {
        double value = random_double();
        int precision = (int)below(40);
        size_t bytes = (size_t)snprintf(want, sizeof want, "%.*f", precision, value);
        fesetround(modes[below(4)]);
        size_t result = weir__format_fixed(have, sizeof have, value, precision);
        fesetround(FE_TONEAREST);
        expect(result == bytes && memcmp(want, have, bytes) == 0, "%a .%d", value, precision);
    }
}

int main(int argc, char **argv)
{
    uint64_t rounds = set_up_random(argc, argv, 300000);
    known_values();
    edges();
    powers();
    ties(rounds);
    random_values(rounds);
    buffer_sizes(rounds / 5);
    rounding_modes(rounds / 5);
    return finish(NAME);
}
