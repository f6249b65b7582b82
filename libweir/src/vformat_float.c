/* vformat_float.c: the conversions %f, %e and %g of a double. */
#include "vformat.h"

#include <langinfo.h>

#include "vformat_pieces.h"

/* Returns whether the rounding mode is to nearest, without fegetround(3), which needs libm and is slower. 1
 * +- 2^-60 is 1 only if it is rounded to the nearest. */
static bool rounds_to_nearest(void)
{
    static const volatile double one = 1, tiny = 0x1p-60;
    return one + tiny == 1 && one - tiny == 1;
}

static void put_nonfinite(struct weir__text *text, const struct weir__spec *spec,
                          const struct weir__double *value, char sign)
{
    bool capital = spec->conversion < 'a';
    struct weir__pieces pieces = {.body = capital ? "INF" : "inf", .body_bytes = 3};
    if (value->mantissa)
        pieces.body = capital ? "NAN" : "nan";
    if (sign)
        weir__add_prefix(&pieces, sign);
    weir__put_pieces(text, spec, &pieces);
}

/* Pads `number`, which has `sign_bytes` bytes of sign, to the field's width in place. */
static void pad(char *number, size_t bytes, size_t sign_bytes, size_t pad, unsigned flags)
{
    if (flags & WEIR_LEFT) {
        memset(number + bytes, ' ', pad);
    } else if (flags & WEIR_ZERO) {
        memmove(number + sign_bytes + pad, number + sign_bytes, bytes - sign_bytes);
        memset(number + sign_bytes, '0', pad);
    } else {
        memmove(number + pad, number, bytes);
        memset(number, ' ', pad);
    }
}

/* Formats the digits in place, where they belong without padding: there may be millions. */
static void put_finite(struct weir__text *text, const struct weir__spec *spec, double magnitude, char sign,
                       char radix)
{
    int precision = spec->precision < 0 ? 6 : spec->precision;
    size_t left = weir__space_left(text), sign_bytes = sign != 0;
    size_t point = precision == 0 && spec->flags & WEIR_ALTERNATIVE;
    char *number = left ? text->to + text->length : NULL;
    char *digits = left > sign_bytes ? number + sign_bytes : NULL;
    size_t bytes = weir__format_fixed(digits, digits ? left - sign_bytes : 0, magnitude, precision);
    bytes += sign_bytes + point;
    size_t width = (size_t)spec->width > bytes ? (size_t)spec->width : bytes;
    text->length += width;
    if (width > left)
        return;
    if (sign)
        *number = sign;
    if (point || precision)
        number[bytes - (size_t)precision - 1] = radix;
    if (width > bytes)
        pad(number, bytes, sign_bytes, width - bytes, spec->flags);
}

/* The longest text of put_digits below: 0.0001 and the digits, or a point, the digits and the exponent. */
enum { MAX_BODY = WEIR_DIGITS_MAX + 8 };

/* Writes e+XX, with at least two digits. */
static char *put_exponent(char *to, int exponent, bool capital)
{
    unsigned magnitude = exponent < 0 ? 0u - (unsigned)exponent : (unsigned)exponent;
    unsigned digits = magnitude < 100 ? 2 : 3;
    *to++ = capital ? 'E' : 'e';
    *to++ = exponent < 0 ? '-' : '+';
    weir__put_digits(to, magnitude, digits);
    return to + digits;
}

/* Writes the digits with the radix character behind the first `whole` of them, if others follow or `point` is set. */
static char *put_with_radix(char *to, uint64_t digits, unsigned count, unsigned whole, char radix, bool point)
{
    weir__put_digits(to, digits, count);
    if (whole == count && !point)
        return to + count;
    memmove(to + whole + 1, to + whole, count - whole);
    to[whole] = radix;
    return to + count + 1;
}

/* Removes trailing zeros, at least one digit stays. */
static unsigned strip_zeros(uint64_t *digits, unsigned count)
{
    if (*digits == 0)
        return 1;
    for (; count > 8 && *digits % 100000000 == 0; count -= 8)
        *digits /= 100000000;
    for (; *digits % 10 == 0; count--)
        *digits /= 10;
    return count;
}

/* Writes the text of %g, which is that of %f or %e depending on the exponent. */
static char *put_general(char *to, const struct weir__spec *spec, struct weir__digits number, unsigned count, char radix)
{
    unsigned left = strip_zeros(&number.digits, count);
    if (number.exponent < -4 || number.exponent >= (int)count) {
        to = put_with_radix(to, number.digits, left, 1, radix, false);
        return put_exponent(to, number.exponent, spec->conversion == 'G');
    }
    if (number.exponent < 0) {
        unsigned zeros = (unsigned)-number.exponent;
        memset(to, '0', 1 + zeros);
        to[1] = radix;
        weir__put_digits(to + 1 + zeros, number.digits, left);
        return to + 1 + zeros + left;
    }
    unsigned whole = (unsigned)number.exponent + 1;
    if (left < whole) { /* zeros of the whole part were removed */
        number.digits *= weir__powers_of_10[whole - left];
        left = whole;
    }
    return put_with_radix(to, number.digits, left, whole, radix, false);
}

/* Formats %e or %g with `count` digits. Returns false if weir__round_digits does. */
static bool put_digits(struct weir__text *text, const struct weir__spec *spec, const struct weir__double *value,
                       unsigned count, char radix)
{
    struct weir__digits number;
    char body[MAX_BODY], *end, sign = weir__sign_of(spec, value->negative);
    struct weir__pieces pieces = {.body = body};
    if (!weir__round_digits(&number, value, count))
        return false;
    if ((spec->conversion | 0x20) == 'g') {
        end = put_general(body, spec, number, count, radix);
    } else {
        end = put_with_radix(body, number.digits, count, 1, radix, spec->flags & WEIR_ALTERNATIVE);
        end = put_exponent(end, number.exponent, spec->conversion == 'E');
    }
    pieces.body_bytes = (size_t)(end - body);
    if (sign)
        weir__add_prefix(&pieces, sign);
    weir__set_field_zeros(&pieces, spec);
    weir__put_pieces(text, spec, &pieces);
    return true;
}

int weir__put_double(struct weir__text *text, const struct weir__spec *spec, double value)
{
    struct weir__double parts = weir__decompose(value);
    char kind = spec->conversion | 0x20, sign = weir__sign_of(spec, parts.negative);
    unsigned precision = spec->precision < 0 ? 6 : (unsigned)spec->precision;
    if (kind == 'a')
        return weir__libc_double(text, spec, value);
    if (!parts.finite) {
        put_nonfinite(text, spec, &parts, sign);
        return 0;
    }
    bool no_point = kind == 'f' && spec->precision == 0 && !(spec->flags & WEIR_ALTERNATIVE);
    const char *radix = no_point ? "." : nl_langinfo(RADIXCHAR);
    if (radix[0] == '\0' || radix[1] != '\0' || !rounds_to_nearest())
        return weir__libc_double(text, spec, value);
    if (kind == 'f') {
        put_finite(text, spec, parts.negative ? -value : value, sign, *radix);
        return 0;
    }
    /* glibc prints %#.1g of 9.96 as 1.e+01, without the zero; the C library's bugs are its own */
    bool own = precision < WEIR_DIGITS_MAX && (kind == 'e' || !(spec->flags & WEIR_ALTERNATIVE));
    unsigned count = kind == 'e' ? precision + 1 : precision ? precision : 1;
    if (own && put_digits(text, spec, &parts, count, *radix))
        return 0;
    return weir__libc_double(text, spec, value);
}
