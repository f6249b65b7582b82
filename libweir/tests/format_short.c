/* format_short.c: the text of weir__format_shortest reads back as the same double, is as short as possible, and is the
 * nearest of the shortest texts. */
#include "format_check.h"

#ifndef NAME
#define NAME "format_short"
#endif

static char text[WEIR_SHORTEST_BYTES + 1];

static const char *format(double value)
{
    memset(text, '?', sizeof text);
    size_t bytes = weir__format_shortest(text, value);
    if (!expect(bytes <= WEIR_SHORTEST_BYTES, "%a: %zu bytes", value, bytes))
        exit(1);
    text[bytes] = '\0';
    return text;
}

static bool same(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

static void check_reads_back(double value)
{
    if (!isfinite(value))
        return;
    double again = strtod(format(value), NULL);
    expect(same(again, value), "%a: \"%s\" reads as %a", value, text, again);
}

/* Extracts the digits without point, exponent, and leading and trailing zeros. Returns their number. */
static unsigned digits_of(const char *number, char *digits)
{
    unsigned count = 0;
    for (; *number && *number != 'e'; number++)
        if (*number >= '0' && *number <= '9' && (count > 0 || *number != '0'))
            digits[count++] = *number;
    while (count > 0 && digits[count - 1] == '0')
        count--;
    digits[count] = '\0';
    return count;
}

/* Checks that the nearest decimal with one digit less does not read back as the value. */
static void check_not_shorter(double value, unsigned count)
{
    char shorter[64];
    if (count < 2)
        return;
    snprintf(shorter, sizeof shorter, "%.*e", (int)count - 2, value);
    expect(!same(strtod(shorter, NULL), value), "%a: \"%s\", but \"%s\" is shorter", value, text, shorter);
}

/* Checks that no decimal with as many digits is nearer: "%.*e" gives the nearest. */
static void check_nearest(double value, const char *digits, unsigned count)
{
    char nearest[64], others[64];
    snprintf(nearest, sizeof nearest, "%.*e", (int)count - 1, value);
    if (!same(strtod(nearest, NULL), value))
        return;
    digits_of(nearest, others);
    expect(strcmp(digits, others) == 0, "%a: \"%s\", but \"%s\" is nearer", value, text, nearest);
}

static void check_shortest(double value)
{
    char digits[64];
    if (!isfinite(value) || value == 0)
        return;
    check_reads_back(value);
    unsigned count = digits_of(text, digits);
    expect(count >= 1 && count <= 17, "%a: %u digits", value, count);
    check_not_shorter(value, count);
    check_nearest(value, digits, count);
}

static void known(double value, const char *want)
{
    expect(strcmp(format(value), want) == 0, "%s instead of %s", text, want);
}

static void known_values(void)
{
    begin("known values");
    known(0.0, "0");
    known(-0.0, "-0");
    known(INFINITY, "inf");
    known(-INFINITY, "-inf");
    known(NAN, "nan");
    known(-NAN, "-nan");
    known(1, "1");
    known(-1.5, "-1.5");
    known(0.1, "0.1");
    known(0.1 + 0.2, "0.30000000000000004");
    known(1.0 / 3, "0.3333333333333333");
    known(100, "100");
    known(123456.789, "123456.789");
    known(5e-324, "5e-324");
    known(1e-323, "1e-323");
    known(1.5e-323, "1.5e-323");
    known(0x1p-1022, "2.2250738585072014e-308");
    known(0x0.fffffffffffffp-1022, "2.225073858507201e-308");
    known(0x1.fffffffffffffp1023, "1.7976931348623157e+308");
    known(-0x1.fffffffffffffp1023, "-1.7976931348623157e+308");
    known(1e22, "1e+22");
    known(1e23, "1e+23");
    known(nextafter(1e23, INFINITY), "1.0000000000000001e+23");
    known(9.5367431640625e-07, "9.5367431640625e-07");
    known(9007199254740991, "9007199254740991");
    known(9007199254740992, "9007199254740992");
    known(9007199254740994, "9007199254740994");
    known(0x1p64, "18446744073709552000");
    known(2.0e-3, "0.002");
    known(4.35, "4.35");
    known(8.41e21, "8.41e+21");
    known(2.0919495182368195e19, "20919495182368195000");
    known(2.6153245263757307e19, "26153245263757308000"); /* of two that read back, this one is nearer */
    known(2.9802322387695312e-08, "2.9802322387695312e-08"); /* 2^-25, a tie: to the even digit */
    known(9.109e-31, "9.109e-31");
    known(4.708356024711512e18, "4708356024711512000");
    known(9.409340012568248e18, "9409340012568248000");
    known(1.18575755e-316, "1.18575755e-316");
    known(2.989102097996e-312, "2.989102097996e-312");
    known(9.0608011534336e15, "9060801153433600");
    known(5.764607523034235e39, "5.764607523034235e+39"); /* powers of two: the lower neighbour is nearer */
    known(1.152921504606847e40, "1.152921504606847e+40");
    known(2.305843009213694e40, "2.305843009213694e+40");
    known(0x1p-44, "5.684341886080802e-14");
    known(9.8567e-322, "9.9e-322");
}

static void notation(void)
{
    begin("plain and scientific notation");
    known(1e-6, "0.000001");
    known(1.25e-6, "0.00000125");
    known(-1.2345678901234567e-6, "-0.0000012345678901234567");
    known(9.999999999999997e-7, "9.999999999999997e-07");
    known(1e-7, "1e-07");
    known(1.5e-10, "1.5e-10");
    known(1e-99, "1e-99");
    known(1e-100, "1e-100");
    known(1e20, "100000000000000000000");
    known(1.5e20, "150000000000000000000");
    known(123456789012345680000.0, "123456789012345680000");
    known(999999999999999900000.0, "999999999999999900000");
    known(1e21, "1e+21");
    known(1.2e21, "1.2e+21");
    known(1e99, "1e+99");
    known(1e100, "1e+100");
    known(12.5, "12.5");
    known(0.5, "0.5");
    known(1234567890123456.7, "1234567890123456.8");
}

static void powers(void)
{
    begin("powers of two and ten, and their neighbours");
    for (int power = -1074; power <= 1023; power++) {
        double value = ldexp(1, power);
        check_shortest(value);
        check_shortest(nextafter(value, 0));
        check_shortest(nextafter(value, INFINITY));
    }
    for (int power = -323; power <= 308; power++) {
        char number[16];
        snprintf(number, sizeof number, "1e%d", power);
        double value = strtod(number, NULL);
        check_shortest(value);
        check_shortest(nextafter(value, 0));
        check_shortest(nextafter(value, INFINITY));
    }
    for (uint64_t bits = 0; bits < 20000; bits++)
        check_shortest(double_of(bits));
}

/* Decimals with at most 15 digits come back unchanged. */
static void few_digits(uint64_t rounds)
{
    begin("decimals of up to 15 digits");
    for (uint64_t i = 0; i < rounds; i++) {
        char number[64], digits[64], again[64];
        uint64_t limit = 1;
        for (unsigned j = 1 + below(15); j > 0; j--)
            limit *= 10;
        snprintf(number, sizeof number, "%" PRIu64 "e%d", random_bits() % limit, (int)below(560) - 290);
        unsigned count = digits_of(number, digits);
        format(strtod(number, NULL));
        expect(digits_of(text, again) == count && strcmp(digits, again) == 0, "%s: %s", number, text);
    }
}

int main(int argc, char **argv)
{
    uint64_t rounds = set_up_random(argc, argv, 2000000);
    known_values();
    notation();
    powers();
    few_digits(rounds / 10);
    begin("random bits read back");
    for (uint64_t i = 0; i < rounds; i++)
        check_reads_back(double_of(random_bits()));
    begin("random doubles of all kinds are shortest and nearest");
    for (uint64_t i = 0; i < rounds / 10; i++)
        check_shortest(random_double());
    return finish(NAME);
}
