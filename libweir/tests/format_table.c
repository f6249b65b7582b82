/* format_table.c: integers, and each conversion with each flag, compared with literal texts: so the result does not
 * depend on the C library. */
#include <limits.h>
#include <wchar.h>

#include "format_check.h"

#define PRINTS(want, ...) \
    do { \
        char to[512]; \
        ssize_t bytes = weir_format(to, sizeof to, __VA_ARGS__); \
        bool right = bytes == (ssize_t)strlen(want) && memcmp(to, want, (size_t)bytes) == 0; \
        expect(right, "%zd \"%.*s\", not \"%s\"", bytes, bytes < 0 ? 0 : (int)bytes, to, want); \
    } while (0)

static void unsigned_is(uint64_t value, const char *want)
{
    char to[WEIR_INT_BYTES + 1];
    memset(to, '?', sizeof to);
    size_t bytes = weir__format_u64(to, value);
    bool right = bytes == strlen(want) && memcmp(to, want, bytes) == 0 && to[bytes] == '?';
    expect(right, "%.*s instead of %s", (int)bytes, to, want);
}

static void signed_is(int64_t value, const char *want)
{
    char to[WEIR_INT_BYTES + 1];
    memset(to, '?', sizeof to);
    size_t bytes = weir__format_i64(to, value);
    bool right = bytes == strlen(want) && memcmp(to, want, bytes) == 0 && to[bytes] == '?';
    expect(right, "%.*s instead of %s", (int)bytes, to, want);
}

static void compare_integer(uint64_t value)
{
    char want[32];
    snprintf(want, sizeof want, "%" PRIu64, value);
    unsigned_is(value, want);
    snprintf(want, sizeof want, "%" PRId64, (int64_t)value);
    signed_is((int64_t)value, want);
}

static void integers(uint64_t rounds)
{
    begin("integers");
    unsigned_is(0, "0");
    unsigned_is(UINT64_MAX, "18446744073709551615");
    signed_is(INT64_MIN, "-9223372036854775808");
    signed_is(-1, "-1");
    for (uint64_t power = 1;; power *= 10) {
        for (uint64_t i = 0; i < 5; i++)
            compare_integer(power - 2 + i);
        if (power == UINT64_C(10000000000000000000))
            break;
    }
    for (unsigned shift = 0; shift < 64; shift++)
        for (uint64_t i = 0; i < 5; i++)
            compare_integer((UINT64_C(1) << shift) - 2 + i);
    for (uint64_t value = 0; value < 200000; value++)
        compare_integer(value);
    for (uint64_t i = 0; i < rounds; i++)
        compare_integer(random_bits() >> below(64));
}

static void signed_conversions(void)
{
    begin("%d %i");
    PRINTS("0 -1 2147483647 -2147483648", "%d %d %d %i", 0, -1, INT_MAX, INT_MIN);
    PRINTS("-128 -32768", "%hhd %hd", 128, 32768);
    PRINTS("1 1", "%hhd %hd", 257, 65537);
    PRINTS("-9223372036854775808 9223372036854775807", "%lld %ji", LLONG_MIN, INTMAX_MAX);
    PRINTS("-1 -2 -3", "%zd %td %ld", (ssize_t)-1, (ptrdiff_t)-2, -3L);
    PRINTS("[   42] [42   ] [00042] [+42] [ 42]", "[%5d] [%-5d] [%05d] [%+d] [% d]", 42, 42, 42, 42, 42);
    PRINTS("[  -42] [-42  ] [-0042] [-42] [-42]", "[%5d] [%-5d] [%05d] [%+d] [% d]", -42, -42, -42, -42, -42);
    PRINTS("[+42] [42   ] [+0042]", "[%+ d] [%-05d] [%0+5d]", 42, 42, 42);
    PRINTS("[00042] [  00042] [00042  ] [  +0042]", "[%.5d] [%7.5d] [%-7.5d] [%+07.4d]", 42, 42, 42, 42);
    PRINTS("[] [0] [     ] [+]", "[%.0d] [%.1d] [%5.d] [%+.0d]", 0, 0, 0, 0);
    PRINTS("[  7] [7  ] [007] [7]", "[%*d] [%*d] [%.*d] [%.*d]", 3, 7, -3, 7, 3, 7, -3, 7);
}

static void unsigned_conversions(void)
{
    begin("%u %o %x %X");
    PRINTS("4294967295 37777777777 ffffffff FFFFFFFF", "%u %o %x %X", UINT_MAX, UINT_MAX, UINT_MAX, UINT_MAX);
    PRINTS("255 377 ff 65535", "%hhu %hho %hhx %hu", 0x1ff, 0x1ff, 0x1ff, 0x1ffff);
    PRINTS("18446744073709551615 1777777777777777777777 ffffffffffffffff", "%lu %llo %jx", ULONG_MAX,
           ULLONG_MAX, UINTMAX_MAX);
    PRINTS("5 5 5", "%+u % u %zu", 5u, 5u, (size_t)5);
    PRINTS("0x1f 0X1F 037 0 0 0", "%#x %#X %#o %#x %#o %#X", 31u, 31u, 31u, 0u, 0u, 0u);
    PRINTS("[0x001f] [0x1f  ] [  0x1f] [0x001f]", "[%#06x] [%-#6x] [%#6x] [%#.4x]", 31u, 31u, 31u, 31u);
    PRINTS("[037] [0037] [ 037] [0] []", "[%#.3o] [%#.4o] [%#4o] [%#.0o] [%.0o]", 31u, 31u, 31u, 0u, 0u);
    PRINTS("[] [] [    ]", "[%.0x] [%#.0x] [%4.0u]", 0u, 0u, 0u);
}

static void text_conversions(void)
{
    static const char not_ended[3] = {'x', 'y', 'z'};
    begin("%s %c %p %%");
    PRINTS("a string", "%s", "a string");
    PRINTS("[  abc] [abc  ] [ab] [   ab] [ab   ] []", "[%5s] [%-5s] [%.2s] [%5.2s] [%-5.2s] [%.0s]", "abc",
           "abc", "abc", "abc", "abc", "abc");
    PRINTS("[xyz] [xy]", "[%.3s] [%.*s]", not_ended, 2, not_ended);
    PRINTS("[(null)] [  (null)] [] [(null)] [     ]", "[%s] [%8s] [%.5s] [%.6s] [%5.1s]", (char *)NULL,
           (char *)NULL, (char *)NULL, (char *)NULL, (char *)NULL);
    PRINTS("[x] [    x] [x    ]", "[%c] [%5c] [%-5c]", 'x', 'x', 'x');
    PRINTS("100% %d", "100%% %%d");
    PRINTS("0x1234 [    0x1234] [0x1234    ] (nil) [(nil)   ]", "%p [%10p] [%-10p] %p [%-8p]", (void *)0x1234,
           (void *)0x1234, (void *)0x1234, (void *)0, (void *)0);
    PRINTS("w wide", "%lc %ls", (wint_t)L'w', L"wide");
    char nul[3], want[3] = {'a', '\0', 'b'};
    expect(weir_format(nul, 3, "a%cb", 0) == 3 && memcmp(nul, want, 3) == 0, "%%c prints a NUL");
}

static void floating_conversions(void)
{
    begin("%f %e %g %a");
    PRINTS("0.000000 1.500000 -2.250000 1000000.000000", "%f %f %f %lf", 0.0, 1.5, -2.25, 1e6);
    PRINTS("0 2 2 4 -0 1.", "%.0f %.0f %.f %.0f %.0f %#.0f", 0.5, 1.5, 2.5, 3.5, -0.5, 1.0);
    PRINTS("0.12 0.38 1.00", "%.2f %.2f %.2f", 0.125, 0.375, 1.005);
    PRINTS("[   3.14] [3.14   ] [0003.14] [+3.14] [ 3.14]", "[%7.2f] [%-7.2f] [%07.2f] [%+.2f] [% .2f]",
           3.14159, 3.14159, 3.14159, 3.14159, 3.14159);
    PRINTS("[  -3.14] [-3.14  ] [-003.14] [+0003.1]", "[%7.2f] [%-7.2f] [%07.2f] [%+07.1f]", -3.14159,
           -3.14159, -3.14159, 3.14159);
    PRINTS("inf -inf INF nan NAN", "%f %f %F %f %F", INFINITY, -INFINITY, INFINITY, NAN, NAN);
    PRINTS("[  inf] [inf  ] [ +inf] [ -INF]", "[%05f] [%-5f] [%+5f] [%05F]", INFINITY, INFINITY, INFINITY,
           -INFINITY);
    PRINTS("[  3.1] [3.1  ] [3.141590]", "[%*.*f] [%*.*f] [%.*f]", 5, 1, 3.14159, -5, 1, 3.14159, -1,
           3.14159);
    PRINTS("1.500000e+00 1.5 0x1.8p+0 1.5", "%e %g %a %.1Lf", 1.5, 1.5, 1.5, 1.5L);
    PRINTS("1.5E+10 [  1e-05] [1E-05  ]", "%.1E [%7g] [%-7G]", 1.5e10, 1e-5, 1e-5);
}

int main(int argc, char **argv)
{
    uint64_t rounds = set_up_random(argc, argv, 1000000);
    integers(rounds);
    signed_conversions();
    unsigned_conversions();
    text_conversions();
    floating_conversions();
    return finish("format_table");
}
