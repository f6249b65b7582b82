/* format_fixed.c: formats a double with a fixed number of digits after the point, exactly rounded.
 *
 * Common sizes take one 128-bit multiplication, if mantissa * 10^precision fits. Other values use long
 * arithmetic: limbs of nine decimal digits for the integer part, of 32 bits for the fraction. */
#include "format.h"

#include <stdbool.h>

enum {
    BILLION = 1000000000,
    WHOLE_LIMBS = 36,      /* of nine digits: 2^1024 has 309 digits */
    FRACTION_LIMBS = 37,   /* of 32 bits: 2^-1074, and a mantissa shifted within three limbs */
    FRACTION_DIGITS = 1074 /* 2^-n has n digits after the point, and the smallest double is 2^-1074 */
};

/* ---- common sizes ---- */

#if defined(__SIZEOF_INT128__)
__extension__ typedef unsigned __int128 uint128;

enum {
    QUICK_PRECISION = 19, /* 2^53 * 10^19 < 2^128, and 10^19 < 2^64 */
    QUICK_POWER = 11      /* 2^53 * 2^11 = 2^64 */
};

/* The integer part, and the fraction times 10^precision. */
struct parts {
    uint64_t whole, fraction;
};

static struct parts round_parts(uint64_t mantissa, int power, unsigned precision)
{
    if (power >= 0)
        return (struct parts){mantissa << power, 0};
    unsigned shift = (unsigned)-power;
    if (shift > 127) /* mantissa * 10^precision < 2^117: less than half of the last digit */
        return (struct parts){0, 0};
    uint64_t whole = shift < 64 ? mantissa >> shift : 0;
    uint64_t fraction = shift < 64 ? mantissa & ((UINT64_C(1) << shift) - 1) : mantissa;
    uint128 scaled = (uint128)fraction * weir__powers_of_10[precision];
    uint128 half = (uint128)1 << (shift - 1), rest = scaled & (half + half - 1);
    uint64_t digits = (uint64_t)(scaled >> shift);
    uint64_t odd = (precision ? digits : whole) & 1;
    digits += rest > half || (rest == half && odd);
    if (digits >= weir__powers_of_10[precision])
        return (struct parts){whole + 1, 0};
    return (struct parts){whole, digits};
}

static bool is_quick(const struct weir__double *value, unsigned precision)
{
    return precision <= QUICK_PRECISION && value->power <= QUICK_POWER;
}

static size_t quick_fixed(char *to, size_t room, const struct weir__double *value, unsigned precision)
{
    struct parts parts = round_parts(value->mantissa, value->power, precision);
    unsigned digits = weir__count_digits(parts.whole);
    size_t length = (size_t)value->negative + digits + (precision ? 1 + precision : 0);
    if (length > room)
        return length;
    *to = '-';
    to += value->negative;
    weir__put_digits(to, parts.whole, digits);
    if (precision) {
        to[digits] = '.';
        weir__put_digits(to + digits + 1, parts.fraction, precision);
    }
    return length;
}
#else
static bool is_quick(const struct weir__double *value, unsigned precision)
{
    (void)value;
    (void)precision;
    return false;
}
static size_t quick_fixed(char *to, size_t room, const struct weir__double *value, unsigned precision)
{
    (void)to;
    (void)room;
    (void)value;
    return precision;
}
#endif

/* ---- all other sizes, as text ---- */

struct decimal {
    char whole[WHOLE_LIMBS * 9];
    size_t whole_digits;
    char fraction[FRACTION_DIGITS];
    size_t fraction_digits; /* followed by zeros */
};

/* Multiplies limbs of nine digits, the lowest first, by 2^shift. shift <= 29, so the carry fits one limb.
 * Returns the number of limbs used. */
static unsigned shift_whole(uint32_t *limb, unsigned used, unsigned shift)
{
    uint64_t carry = 0;
    for (unsigned i = 0; i < used; i++) {
        uint64_t sum = ((uint64_t)limb[i] << shift) + carry;
        limb[i] = (uint32_t)(sum % BILLION);
        carry = sum / BILLION;
    }
    if (carry)
        limb[used++] = (uint32_t)carry;
    return used;
}

static void put_whole(struct decimal *decimal, uint64_t mantissa, unsigned power)
{
    uint32_t limb[WHOLE_LIMBS] = {0};
    unsigned used = 0;
    do
        limb[used++] = (uint32_t)(mantissa % BILLION);
    while (mantissa /= BILLION);
    for (unsigned step; power > 0; power -= step) {
        step = power < 29 ? power : 29;
        used = shift_whole(limb, used, step);
    }
    char *to = decimal->whole + weir__format_u64(decimal->whole, limb[--used]);
    for (; used > 0; to += 9)
        weir__put_digits(to, limb[--used], 9);
    decimal->whole_digits = (size_t)(to - decimal->whole);
}

/* A fraction 0.xxx in base 2^32: limb[high - 1] follows the point, limb[low] is the lowest that is not 0. */
struct fraction {
    uint32_t limb[FRACTION_LIMBS];
    unsigned low, high;
};

static void skip_zeros(struct fraction *fraction)
{
    while (fraction->low < fraction->high && fraction->limb[fraction->low] == 0)
        fraction->low++;
}

/* Sets the fraction to bits * 2^-shift, which is below 1. */
static void set_fraction(struct fraction *fraction, uint64_t bits, unsigned shift)
{
    memset(fraction, 0, sizeof *fraction);
    fraction->high = (shift + 31) / 32;
    unsigned up = fraction->high * 32 - shift;
    fraction->limb[0] = (uint32_t)(bits << up);
    fraction->limb[1] = (uint32_t)(bits >> (32 - up));
    fraction->limb[2] = (uint32_t)((bits >> 32) >> (32 - up));
    skip_zeros(fraction);
}

/* Multiplies by `factor` and returns the integer part. A power of ten clears the lowest bits, so the
 * fraction becomes shorter. */
static uint32_t multiply(struct fraction *fraction, uint32_t factor)
{
    uint64_t carry = 0;
    for (unsigned i = fraction->low; i < fraction->high; i++) {
        carry += (uint64_t)fraction->limb[i] * factor;
        fraction->limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
    skip_zeros(fraction);
    return (uint32_t)carry;
}

static void put_fraction(struct fraction *fraction, char *to, size_t digits)
{
    for (; digits >= 9; digits -= 9, to += 9)
        weir__put_digits(to, multiply(fraction, BILLION), 9);
    if (digits)
        weir__put_digits(to, multiply(fraction, (uint32_t)weir__powers_of_10[digits]), (unsigned)digits);
}

/* Returns whether the fraction rounds up: above one half, or equal to it and `odd`. */
static bool rounds_up(const struct fraction *fraction, bool odd)
{
    if (fraction->low == fraction->high)
        return false;
    uint32_t top = fraction->limb[fraction->high - 1];
    if (top != UINT32_C(1) << 31)
        return top >> 31;
    return odd || fraction->low < fraction->high - 1;
}

/* Adds 1 to the last digit. Returns 1 if the carry passes the point: all digits were 9. */
static unsigned increment(char *digits, size_t count)
{
    while (count-- > 0) {
        if (digits[count]++ != '9')
            return 0;
        digits[count] = '0';
    }
    return 1;
}

static void put_decimal(struct decimal *decimal, const struct weir__double *value, size_t precision)
{
    struct fraction fraction;
    decimal->fraction_digits = 0;
    if (value->power >= 0) {
        put_whole(decimal, value->mantissa, (unsigned)value->power);
        return;
    }
    unsigned shift = (unsigned)-value->power;
    size_t digits = precision < shift ? precision : shift; /* the fraction has at most `shift` digits */
    uint64_t whole = shift < 64 ? value->mantissa >> shift : 0;
    set_fraction(&fraction, shift < 64 ? value->mantissa - (whole << shift) : value->mantissa, shift);
    put_fraction(&fraction, decimal->fraction, digits);
    uint64_t last =
        digits ? (uint64_t)decimal->fraction[digits - 1] : whole; /* the codes of '0', '2' … are even */
    if (rounds_up(&fraction, last & 1))
        whole += increment(decimal->fraction, digits);
    put_whole(decimal, whole, 0);
    decimal->fraction_digits = digits;
}

static size_t long_fixed(char *to, size_t room, const struct weir__double *value, size_t precision)
{
    struct decimal decimal;
    put_decimal(&decimal, value, precision);
    size_t length = (size_t)value->negative + decimal.whole_digits + (precision ? 1 + precision : 0);
    if (length > room)
        return length;
    *to = '-';
    to += value->negative;
    memcpy(to, decimal.whole, decimal.whole_digits);
    if (precision) {
        to += decimal.whole_digits;
        *to++ = '.';
        memcpy(to, decimal.fraction, decimal.fraction_digits);
        memset(to + decimal.fraction_digits, '0', precision - decimal.fraction_digits);
    }
    return length;
}

size_t weir__format_fixed(char *to, size_t room, double value, int precision)
{
    struct weir__double parts = weir__decompose(value);
    unsigned digits = precision < 0 ? 6 : (unsigned)precision;
    size_t max = 3 + (size_t)parts.negative;
    if (!parts.finite)
        return max <= room ? weir__put_nonfinite(to, &parts) : max;
    if (is_quick(&parts, digits))
        return quick_fixed(to, room, &parts, digits);
    return long_fixed(to, room, &parts, digits);
}
