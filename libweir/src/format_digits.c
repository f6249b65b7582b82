/* format_digits.c: rounds a double to a number of significant digits, for %e and %g.
 *
 * The double times a power of ten is an integer with the wanted digits and a fraction that decides the rounding. The
 * product is computed to 128 bits from the table of format_shortest.c. Its error is so small that it matters only if
 * the fraction is almost one half: then the exact product is used, if the power of ten is exact, or the caller must
 * find the digits in another way. */
#include "format.h"

#if defined(__SIZEOF_INT128__)
__extension__ typedef unsigned __int128 uint128;

/* Floors of logarithms, exact for every power of a double and of the table. A right shift of a negative number is
 * implementation-defined, hence the offset. */
static int floor_shift(int64_t value, unsigned bits)
{
    return (int)((value + (INT64_C(1) << 40)) >> bits) - (int)(INT64_C(1) << (40 - bits));
}
static int log10_of_power_of_2(int power) { return floor_shift(power * INT64_C(1262611), 22); }
static int log2_of_power_of_10(int power) { return floor_shift(power * INT64_C(1741647), 19); }

/* A number in units of 2^-(shift + 64): the highest 128 and the lowest 64 bits. */
struct product {
    uint128 high;
    uint64_t low;
    unsigned shift; /* of `high`: bits of the fraction */
    bool exact;     /* otherwise up to one unit of `high` too large */
};

enum { EXACT_POWER = 55 }; /* 5^55 < 2^128 */

/* Multiplies mantissa * 2^power, with the highest bit of the mantissa set, by 10^exponent. */
static struct product scale(uint64_t mantissa, int power, int exponent)
{
    struct weir__power ten = weir__power_table[exponent - WEIR_POWER_MIN];
    struct product product = {.exact = exponent >= 0 && exponent <= EXACT_POWER};
    if (product.exact && ten.low-- == 0) /* the table has one too many */
        ten.high--;
    uint128 low = (uint128)mantissa * ten.low, high = (uint128)mantissa * ten.high;
    product.high = high + (uint64_t)(low >> 64);
    product.low = (uint64_t)low;
    product.shift = (unsigned)(63 - power - log2_of_power_of_10(exponent));
    return product;
}

enum rounding { DOWN, UP, UNKNOWN };

/* Rounds to the nearest, ties to even. */
static enum rounding direction(const struct product *product)
{
    uint128 half = (uint128)1 << (product->shift - 1), fraction = product->high & (half + half - 1);
    if (!product->exact && fraction + 2 > half && fraction < half + 2)
        return UNKNOWN;
    if (fraction != half || product->low)
        return fraction >= half ? UP : DOWN;
    return product->high >> product->shift & 1 ? UP : DOWN;
}

/* Rounds an integer, which divided by 10^drop has `count` digits. */
static uint64_t round_integer(uint64_t value, unsigned drop)
{
    uint64_t ten = weir__powers_of_10[drop], digits = value / ten, rest = value % ten;
    bool tie = drop && rest == ten / 2;
    return digits + (tie ? digits & 1 : rest > ten / 2 && drop);
}

static bool is_small_integer(const struct weir__double *value)
{
    return value->power <= 0 && value->power > -53 && (value->mantissa & ((UINT64_C(1) << -value->power) - 1)) == 0;
}

/* Returns the digits with their exponent after a carry out of the first digit. */
static bool finish(struct weir__digits *digits, uint64_t value, unsigned count, int exponent)
{
    if (value == weir__powers_of_10[count]) {
        value /= 10;
        exponent++;
    }
    *digits = (struct weir__digits){value, exponent};
    return true;
}

bool weir__round_digits(struct weir__digits *digits, const struct weir__double *value, unsigned count)
{
    if (value->mantissa == 0) {
        *digits = (struct weir__digits){0, 0};
        return true;
    }
    if (is_small_integer(value)) {
        uint64_t integer = value->mantissa >> -value->power;
        unsigned has = weir__count_digits(integer);
        if (has > count)
            return finish(digits, round_integer(integer, has - count), count, (int)has - 1);
        return finish(digits, integer * weir__powers_of_10[count - has], count, (int)has - 1);
    }
    int unused = __builtin_clzll(value->mantissa);
    uint64_t mantissa = value->mantissa << unused;
    int power = value->power - unused, first = log10_of_power_of_2(power + 63);
    for (;; first++) { /* `first` is at most 1 too small */
        int exponent = (int)count - 1 - first;
        if (exponent < WEIR_POWER_MIN || exponent > WEIR_POWER_MAX)
            return false;
        struct product product = scale(mantissa, power, exponent);
        uint64_t whole = (uint64_t)(product.high >> product.shift);
        if (whole >= weir__powers_of_10[count])
            continue;
        enum rounding rounding = direction(&product);
        return rounding != UNKNOWN && finish(digits, whole + (rounding == UP), count, first);
    }
}
#else
bool weir__round_digits(struct weir__digits *digits, const struct weir__double *value, unsigned count)
{
    (void)digits;
    (void)value;
    (void)count;
    return false;
}
#endif
