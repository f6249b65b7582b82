/* format_shortest.c: formats the shortest decimal that reads back as the same double.
 *
 * The algorithm is Raffaello Giulietti's, "The Schubfach way to render doubles". Every decimal between the
 * midpoints to the double's two neighbours reads back as the double; the midpoints themselves do if the
 * mantissa is even. Let 10^k be the largest power of ten not above the midpoints' distance. Then one or
 * more multiples of 10^k lie between them, and at most one of 10^(k+1), which is the shortest. Without it,
 * the shortest is the nearer of the two multiples of 10^k around the double. Three multiplications by the
 * 128-bit value of 10^-k decide this; scripts/pow10-table proves that their precision suffices. */
#include "format.h"

#include <stdbool.h>

/* digits * 10^exponent */
struct decimal {
    uint64_t digits;
    int exponent;
};

/* Returns floor(value / 2^bits) for |value| < 2^40. A right shift of a negative number is
 * implementation-defined. */
static int floor_shift(int64_t value, unsigned bits)
{
    return (int)((value + (INT64_C(1) << 40)) >> bits) - (int)(INT64_C(1) << (40 - bits));
}

/* Floors of logarithms, exact for every power of two of a double. */
static int log10_of_power_of_2(int power) { return floor_shift(power * INT64_C(1262611), 22); }
static int log10_of_three_quarters(int power) { return floor_shift(power * INT64_C(1262611) - 524031, 22); }
static int log2_of_power_of_10(int power) { return floor_shift(power * INT64_C(1741647), 19); }

/* Multiplies to 128 bits. Returns the low 64. */
static uint64_t multiply(uint64_t a, uint64_t b, uint64_t *high)
{
#if defined(__SIZEOF_INT128__)
    __extension__ unsigned __int128 product = (unsigned __int128)a * b;
    *high = (uint64_t)(product >> 64);
    return (uint64_t)product;
#else
    uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
    uint64_t low = a0 * b0, middle = a1 * b0 + (low >> 32), other = a0 * b1 + (uint32_t)middle;
    *high = a1 * b1 + (middle >> 32) + (other >> 32);
    return other << 32 | (uint32_t)low;
#endif
}

/* Returns floor(value * power / 2^128), with the lowest bit set if that is not exact. A comparison with an
 * even number then has the result of the exact product. */
static uint64_t scale(uint64_t value, const struct weir__power *power)
{
    uint64_t carry, high;
    multiply(value, power->low, &carry);
    uint64_t low = multiply(value, power->high, &high) + carry;
    high += low < carry;
    return high | (low > 1); /* `power` is up to 1 too large in its last place */
}

static struct decimal shortest(uint64_t mantissa, int power)
{
    bool uneven = mantissa == UINT64_C(1) << 52 && power > -1074; /* the lower neighbour is half as far */
    int k = uneven ? log10_of_three_quarters(power) : log10_of_power_of_2(power);
    const struct weir__power *ten = &weir__power_table[-k - WEIR_POWER_MIN];
    int shift = power + log2_of_power_of_10(-k) + 1;
    /* All in quarters of 10^k. With an odd mantissa the midpoints are excluded: move both bounds by 1. */
    uint64_t odd = mantissa & 1, quarters = scale(mantissa * 4 << shift, ten);
    uint64_t low = scale((mantissa * 4 - 2 + uneven) << shift, ten) + odd;
    uint64_t high = scale((mantissa * 4 + 2) << shift, ten) - odd;

    uint64_t below = quarters / 4, tens = quarters / 40;
    bool low_ten = low <= 40 * tens, high_ten = 40 * tens + 40 <= high;
    if (tens && low_ten != high_ten)
        return (struct decimal){tens + high_ten, k + 1};
    bool low_one = low <= 4 * below, high_one = 4 * below + 4 <= high;
    if (low_one != high_one)
        return (struct decimal){below + high_one, k};
    uint64_t half = 4 * below + 2;
    return (struct decimal){below + (quarters > half || (quarters == half && below & 1)), k};
}

/* An integer below 2^53 is its own shortest decimal: any shorter decimal lies beyond the midpoints. */
static bool is_integer(const struct weir__double *value)
{
    return value->power <= 0 && value->power > -53 &&
           (value->mantissa & ((UINT64_C(1) << -value->power) - 1)) == 0;
}

static void strip_zeros(struct decimal *decimal)
{
    static const struct {
        uint32_t divisor;
        int digits;
    } steps[] = {{100000000, 8}, {10000, 4}, {100, 2}, {10, 1}};
    for (unsigned i = 0; i < sizeof steps / sizeof *steps; i++)
        for (; decimal->digits % steps[i].divisor == 0; decimal->exponent += steps[i].digits)
            decimal->digits /= steps[i].divisor;
}

/* Writes 0.00ddd, ddd.ddd or ddd00; `first` is the exponent of the first digit. */
static size_t put_plain(char *to, const struct decimal *decimal, unsigned count, int first)
{
    if (first < 0) {
        unsigned zeros = (unsigned)-first;
        memset(to, '0', 1 + zeros);
        to[1] = '.';
        weir__put_digits(to + 1 + zeros, decimal->digits, count);
        return 1 + zeros + count;
    }
    weir__put_digits(to, decimal->digits, count);
    if (decimal->exponent >= 0) {
        memset(to + count, '0', (size_t)decimal->exponent);
        return count + (size_t)decimal->exponent;
    }
    unsigned whole = (unsigned)first + 1;
    memmove(to + whole + 1, to + whole, count - whole);
    to[whole] = '.';
    return count + 1;
}

/* Writes d.ddde+XX. */
static size_t put_scientific(char *to, const struct decimal *decimal, unsigned count, int first)
{
    char *at = to + 1 + count;
    weir__put_digits(to + 1, decimal->digits, count);
    to[0] = to[1];
    to[1] = '.';
    if (count == 1)
        at--;
    *at++ = 'e';
    *at++ = first < 0 ? '-' : '+';
    uint32_t exponent = (uint32_t)(first < 0 ? -first : first);
    unsigned digits = exponent < 100 ? 2 : 3;
    weir__put_digits(at, exponent, digits);
    return (size_t)(at - to) + digits;
}

size_t weir__format_shortest(char *to, double value)
{
    struct weir__double parts = weir__decompose(value);
    if (!parts.finite)
        return weir__put_nonfinite(to, &parts);
    *to = '-';
    to += parts.negative;
    size_t negative = (size_t)parts.negative;
    if (parts.mantissa == 0)
        return negative + weir__format_u64(to, 0);
    if (is_integer(&parts))
        return negative + weir__format_u64(to, parts.mantissa >> -parts.power);
    struct decimal decimal = shortest(parts.mantissa, parts.power);
    strip_zeros(&decimal);
    unsigned count = weir__count_digits(decimal.digits);
    int first = decimal.exponent + (int)count - 1;
    bool plain = first >= -6 && first <= 20;
    return negative + (plain ? put_plain : put_scientific)(to, &decimal, count, first);
}
