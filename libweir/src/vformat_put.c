/* vformat_put.c: the printf conversions that libweir performs itself, with all flags. */
#include "vformat.h"

#include <langinfo.h>

/* The parts of a formatted field, from left to right: [spaces] prefix zeros body [spaces]. */
struct pieces {
    char prefix[3]; /* sign, 0x, or both */
    size_t prefix_bytes;
    size_t zeros;
    const char *body;
    size_t body_bytes;
};

/* Fills and returns the end. Usually `bytes` is 0; the test avoids a call of memset(3). */
static inline char *repeat(char *to, int c, size_t bytes)
{
    if (bytes)
        memset(to, c, bytes);
    return to + bytes;
}

static void put_pieces(struct weir__text *text, const struct weir__spec *spec, const struct pieces *pieces)
{
    size_t bytes = pieces->prefix_bytes + pieces->zeros + pieces->body_bytes;
    size_t spaces = (size_t)spec->width > bytes ? (size_t)spec->width - bytes : 0;
    size_t left = weir__space_left(text), before = spec->flags & WEIR_LEFT ? 0 : spaces;
    if (bytes + spaces <= left && left) {
        char *to = repeat(text->to + text->length, ' ', before);
        for (size_t i = 0; i < pieces->prefix_bytes; i++)
            *to++ = pieces->prefix[i];
        to = repeat(to, '0', pieces->zeros);
        memcpy(to, pieces->body, pieces->body_bytes);
        repeat(to + pieces->body_bytes, ' ', spaces - before);
    }
    text->length += bytes + spaces;
}

/* Returns 0 if there is no sign. */
static char sign_of(const struct weir__spec *spec, bool negative)
{
    if (negative)
        return '-';
    return spec->flags & WEIR_PLUS ? '+' : spec->flags & WEIR_SPACE ? ' ' : 0;
}

static void add_prefix(struct pieces *pieces, char c)
{
    pieces->prefix[pieces->prefix_bytes++] = c;
}

static void set_zeros(struct pieces *pieces, const struct weir__spec *spec)
{
    size_t wanted = spec->precision > 0 ? (size_t)spec->precision : 0, has = pieces->body_bytes;
    if (spec->precision < 0 && (spec->flags & (WEIR_ZERO | WEIR_LEFT)) == WEIR_ZERO) {
        wanted = (size_t)spec->width;
        has += pieces->prefix_bytes;
    }
    pieces->zeros = wanted > has ? wanted - has : 0;
}

/* Writes digits of 2^bits backwards from `end`; none for 0. Returns the first digit. */
static char *put_bits(char *end, uintmax_t value, unsigned bits, const char *alphabet)
{
    for (; value; value >>= bits)
        *--end = alphabet[value & ((1u << bits) - 1)];
    return end;
}

static void put_hex(struct weir__text *text, const struct weir__spec *spec, struct pieces *pieces,
                    uintmax_t value)
{
    char digits[16], *end = digits + sizeof digits;
    bool capital = spec->conversion == 'X';
    char *start = put_bits(end, value, 4, capital ? "0123456789ABCDEF" : "0123456789abcdef");
    if (value && (spec->flags & WEIR_ALTERNATIVE || spec->conversion == 'p')) {
        add_prefix(pieces, '0');
        add_prefix(pieces, capital ? 'X' : 'x');
    }
    if (value == 0 && spec->precision != 0)
        *--start = '0';
    pieces->body = start;
    pieces->body_bytes = (size_t)(end - start);
    set_zeros(pieces, spec);
    put_pieces(text, spec, pieces);
}

/* The alternative form begins with a 0, which counts as a digit. */
static void put_octal(struct weir__text *text, const struct weir__spec *spec, uintmax_t value)
{
    char digits[23], *end = digits + sizeof digits;
    char *start = put_bits(end, value, 3, "01234567");
    if (spec->flags & WEIR_ALTERNATIVE || (value == 0 && spec->precision != 0))
        *--start = '0';
    struct pieces pieces = {.body = start, .body_bytes = (size_t)(end - start)};
    set_zeros(&pieces, spec);
    put_pieces(text, spec, &pieces);
}

static void put_decimal(struct weir__text *text, const struct weir__spec *spec, char sign, uint64_t value)
{
    char digits[WEIR_INT_BYTES];
    struct pieces pieces = {.body = digits};
    if (sign)
        add_prefix(&pieces, sign);
    if (value != 0 || spec->precision != 0)
        pieces.body_bytes = weir__format_u64(digits, value);
    set_zeros(&pieces, spec);
    put_pieces(text, spec, &pieces);
}

void weir__put_signed(struct weir__text *text, const struct weir__spec *spec, intmax_t value)
{
    uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    put_decimal(text, spec, sign_of(spec, value < 0), magnitude);
}

void weir__put_unsigned(struct weir__text *text, const struct weir__spec *spec, uintmax_t value)
{
    struct pieces pieces = {.body = NULL};
    if (spec->conversion == 'u')
        put_decimal(text, spec, 0, value);
    else if (spec->conversion == 'o')
        put_octal(text, spec, value);
    else
        put_hex(text, spec, &pieces, value);
}

/* As glibc: 0x1f with the flags of %d, and (nil) for NULL. */
void weir__put_pointer(struct weir__text *text, const struct weir__spec *spec, const void *value)
{
    struct pieces pieces = {.body = "(nil)", .body_bytes = 5};
    char sign = sign_of(spec, false);
    if (!value) {
        put_pieces(text, spec, &pieces);
        return;
    }
    if (sign)
        add_prefix(&pieces, sign);
    put_hex(text, spec, &pieces, (uintptr_t)value);
}

void weir__put_char(struct weir__text *text, const struct weir__spec *spec, int value)
{
    char byte = (char)value;
    struct pieces pieces = {.body = &byte, .body_bytes = 1};
    put_pieces(text, spec, &pieces);
}

void weir__put_string(struct weir__text *text, const struct weir__spec *spec, const char *value)
{
    struct pieces pieces = {.body = value};
    if (!value) /* as glibc: complete or not at all */
        pieces.body = spec->precision < 0 || spec->precision >= 6 ? "(null)" : "";
    size_t max = spec->precision < 0 ? SIZE_MAX : (size_t)spec->precision;
    pieces.body_bytes = max == SIZE_MAX ? strlen(pieces.body) : strnlen(pieces.body, max);
    put_pieces(text, spec, &pieces);
}

/* ---- %f ---- */

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
    bool capital = spec->conversion == 'F';
    struct pieces pieces = {.body = capital ? "INF" : "inf", .body_bytes = 3};
    if (value->mantissa)
        pieces.body = capital ? "NAN" : "nan";
    if (sign)
        add_prefix(&pieces, sign);
    put_pieces(text, spec, &pieces);
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

int weir__put_fixed(struct weir__text *text, const struct weir__spec *spec, double value)
{
    struct weir__double parts = weir__decompose(value);
    char sign = sign_of(spec, parts.negative);
    if (!parts.finite) {
        put_nonfinite(text, spec, &parts, sign);
        return 0;
    }
    bool has_point = spec->precision != 0 || spec->flags & WEIR_ALTERNATIVE;
    const char *radix = has_point ? nl_langinfo(RADIXCHAR) : ".";
    if (radix[0] == '\0' || radix[1] != '\0' || !rounds_to_nearest())
        return weir__libc_double(text, spec, value);
    put_finite(text, spec, parts.negative ? -value : value, sign, *radix);
    return 0;
}
