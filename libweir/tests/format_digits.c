/* format_digits.c: %e and %g of doubles for every number of digits: compared with the C library's, which are exact in
 * glibc and in musl. Values whose digits end in an exact or an almost exact half are included. */
#include "format_check.h"

enum { ROOM = 512, MAX_DIGITS = 20 };

static uint64_t done_by_libweir, done_by_libc;

/* weir__round_digits may give up. A test that never saw it succeed would prove nothing. */
static void count_own(double value, unsigned digits)
{
    struct weir__digits unused;
    struct weir__double parts = weir__decompose(value);
    if (!parts.finite || digits < 1 || digits > WEIR_DIGITS_MAX)
        return;
    if (weir__round_digits(&unused, &parts, digits))
        done_by_libweir++;
    else
        done_by_libc++;
}

static void compare(const char *format, int width, int precision, double value)
{
    static char want[ROOM], have[ROOM];
    ssize_t expected = libc_format(want, ROOM, format, width, precision, value);
    ssize_t bytes = weir_format(have, ROOM, format, width, precision, value);
    expect(bytes == expected && memcmp(want, have, (size_t)bytes) == 0,
           "%s with %d, %d and %a: %zd \"%.*s\" instead of \"%s\"", format, width, precision, value, bytes, (int)bytes,
           have, want);
}

static void every_digit(double value)
{
    for (int digits = 0; digits <= MAX_DIGITS; digits++) {
        compare("%*.*e", 0, digits, value);
        compare("%*.*g", 0, digits, -value);
        count_own(value, (unsigned)digits);
    }
}

static void edges(void)
{
    static const double values[] = {
        0, 1, 0.5, 1.5, 2.5, 9.5, 99.5, 999.5, 9.96, 99.96, 0.05, 0.95, 0.995, 0.1, 0.3, 1.0 / 3, 2.0 / 3, 25, 35, 250,
        35e20, 2.5e22, 5e-5, 9.9995e-5, 0.0001, 0.00001, 999999.5, 9999995, 1e22, 1e23, 9e22, 5e-324, 0x1p-1022,
        0x1.fffffffffffffp-1023, 0x1.fffffffffffffp1023, 0x1p52, 0x1p53, 0x1p63, 0x1p64, 4503599627370497.5,
        999999999999999.875, 0.99999999999999994, 9.9999999999999982, 12345678901234568, INFINITY, NAN,
    };
    begin("edges with every number of digits");
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        every_digit(values[i]);
}

static void powers(void)
{
    begin("powers of two and of ten, and their neighbours");
    for (int power = -1074; power <= 1023; power++) {
        double two = ldexp(1, power), ten = power >= -323 && power <= 308 ? pow(10, power) : two;
        every_digit(two);
        every_digit(nextafter(two, INFINITY));
        every_digit(ten);
        every_digit(nextafter(ten, 0));
    }
}

/* Returns a double next to a decimal of `digits` digits and a half. */
static double near_half(unsigned digits)
{
    char text[48];
    uint64_t value = random_bits() % weir__powers_of_10[digits];
    snprintf(text, sizeof text, "%" PRIu64 "5e%d", value, (int)below(620) - 310);
    return strtod(text, NULL);
}

static void random_values(uint64_t rounds)
{
    static const char *const formats[] = {"%*.*e", "%*.*g", "%*.*E", "%*.*G", "%-*.*e", "%0*.*g", "%+*.*e", "% *.*g",
                                          "%#*.*e", "%0-*.*e", "%+0*.*e"};
    begin("random values, widths and flags");
    for (uint64_t i = 0; i < rounds; i++) {
        unsigned digits = below(MAX_DIGITS);
        double value = below(3) ? random_double() : near_half(digits < 18 ? digits : 18);
        compare(formats[below(sizeof formats / sizeof *formats)], (int)below(40), (int)digits, value);
        count_own(value, digits);
    }
}

static void shares(void)
{
    begin("who found the digits");
    printf("by libweir %" PRIu64 ", by the C library %" PRIu64 "\n", done_by_libweir, done_by_libc);
    expect(done_by_libc > 0, "no value was passed to the C library");
#if defined(__SIZEOF_INT128__)
    expect(done_by_libweir > 4 * done_by_libc, "libweir found too few");
#endif
}

int main(int argc, char **argv)
{
    uint64_t rounds = set_up_random(argc, argv, 3000000);
    edges();
    powers();
    random_values(rounds);
    shares();
    return finish("format_digits");
}
