/* format.h: formats numbers and printf conversions as text, independent of streams.
 *
 * No function writes a terminating NUL, keeps state or changes errno. None allocates, except weir__vformat
 * as described below. */
#ifndef WEIR_FORMAT_H
#define WEIR_FORMAT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#define WEIR_INT_BYTES 20      /* longest 64-bit integer with its sign */
#define WEIR_SHORTEST_BYTES 32 /* longest output of weir__format_shortest */

/* Return the number of bytes written. */
size_t weir__format_u64(char *to, uint64_t value);
size_t weir__format_i64(char *to, int64_t value);

/* Formats as "%.*f" in the C locale: the nearest decimal to the exact value, ties to even, independent of
 * fesetround(3). Infinities and NaNs are inf, -inf, nan, -nan. Returns the needed length; writes only if it
 * is <= room. A negative precision means 6, as in printf(3). */
size_t weir__format_fixed(char *to, size_t room, double value, int precision);

/* Writes the shortest decimal that reads back (round to nearest) as the same double; among equally short
 * ones the nearest to it; among equally near ones the even one. With d the digits without trailing zeros
 * and x the exponent of the first digit (d.ddd * 10^x), the format is that of JavaScript's
 * Number::toString:
 *   0 <= x <= 20   plain, with a point only if digits follow it: 1, -0, 123.5, 100000000000000000000
 *   -6 <= x < 0    plain: 0.1, 0.000001
 *   otherwise      d.ddde+XX or d.ddde-XX, with at least two digits of exponent, as printf: 1e+23,
 *                  1.5e-07, 5e-324
 * Infinities and NaNs as in weir__format_fixed. */
size_t weir__format_shortest(char *to, double value);

/* Formats as vsnprintf(3). Returns the needed length, or -errno; writes only below `room`, and the
 * complete text only if the length is <= room. Errors: -EINVAL for %n, -EOVERFLOW for a length above
 * INT_MAX, -EILSEQ for a wide character that the locale does not have. The output equals the C
 * library's; where C libraries differ (%p, NULL for %s), glibc's. Conversions that the C library
 * performs (vformat_libc.c) may allocate there, and use malloc(3) if the text is longer than 511 bytes
 * and fits without a byte to spare. */
ssize_t weir__vformat(char *to, size_t room, const char *format, va_list arguments);

/* ---- for format_*.c and vformat*.c ---------------------------------------------------------------- */

extern const char weir__digit_pairs[200]; /* "00" to "99" */
extern const uint64_t weir__powers_of_10[20];

/* The first 128 significant bits of 10^exponent, rounded down, plus 1 in the last place. */
struct weir__power {
    uint64_t high, low;
};
enum { WEIR_POWER_MIN = -292, WEIR_POWER_MAX = 324 };
extern const struct weir__power weir__power_table[WEIR_POWER_MAX - WEIR_POWER_MIN + 1];

/* Returns the number of decimal digits of value, 1 to 20. */
static inline unsigned weir__count_digits(uint64_t value)
{
    value |= 1; /* gives 0 one digit; no power of ten above 1 is odd, so the count of other values stays */
#if defined(__GNUC__)
    unsigned bits = 64 - (unsigned)__builtin_clzll(value);
    unsigned digits = bits * 1233 >> 12; /* bits * log10(2): exact, or one too low */
    return digits + (value >= weir__powers_of_10[digits]);
#else
    unsigned digits = 1;
    while (digits < 20 && value >= weir__powers_of_10[digits])
        digits++;
    return digits;
#endif
}

static inline void weir__put_pair(char *to, uint32_t value)
{
    memcpy(to, weir__digit_pairs + 2 * value, 2);
}

/* Writes value, which is below 10^count, as `count` digits with leading zeros. */
static inline void weir__put_digits(char *to, uint64_t value, unsigned count)
{
    for (; count >= 8; value /= 100000000) { /* four independent divisions, which the processor overlaps */
        uint32_t part = (uint32_t)(value % 100000000), high = part / 10000, low = part % 10000;
        count -= 8;
        weir__put_pair(to + count, high / 100);
        weir__put_pair(to + count + 2, high % 100);
        weir__put_pair(to + count + 4, low / 100);
        weir__put_pair(to + count + 6, low % 100);
    }
    uint32_t rest = (uint32_t)value;
    for (; count >= 2; rest /= 100) {
        count -= 2;
        weir__put_pair(to + count, rest % 100);
    }
    if (count)
        *to = (char)('0' + rest);
}

/* A double: (-1)^negative * mantissa * 2^power. */
struct weir__double {
    uint64_t mantissa;
    int power;
    int negative;
    int finite; /* if 0: mantissa 0 is infinity, otherwise NaN */
};

static inline struct weir__double weir__decompose(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    unsigned exponent = bits >> 52 & 0x7ff;
    uint64_t mantissa = bits & ((UINT64_C(1) << 52) - 1), hidden = UINT64_C(1) << 52;
    if (exponent == 0x7ff)
        return (struct weir__double){mantissa, 0, (int)(bits >> 63), 0};
    if (exponent == 0) /* subnormal */
        return (struct weir__double){mantissa, 1 - 1075, (int)(bits >> 63), 1};
    return (struct weir__double){mantissa | hidden, (int)exponent - 1075, (int)(bits >> 63), 1};
}

/* digits * 10^(exponent - count + 1): `count` digits, of which the first has the exponent `exponent`. */
struct weir__digits {
    uint64_t digits;
    int exponent;
};
enum { WEIR_DIGITS_MAX = 18 };
/* Rounds a finite value's magnitude to `count` digits (1 to WEIR_DIGITS_MAX), to the nearest, ties to even. Returns
 * false if it cannot: for some values of extreme size, and almost ties. 0 has only zeros, and the exponent 0. */
bool weir__round_digits(struct weir__digits *digits, const struct weir__double *value, unsigned count);

/* Writes inf, -inf, nan or -nan: at most 4 bytes. */
static inline size_t weir__put_nonfinite(char *to, const struct weir__double *parts)
{
    *to = '-';
    memcpy(to + parts->negative, parts->mantissa ? "nan" : "inf", 3);
    return 3 + (size_t)parts->negative;
}

#endif /* WEIR_FORMAT_H */
