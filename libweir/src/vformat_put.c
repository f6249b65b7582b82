/* vformat_put.c: the conversions of integers, characters, strings and pointers, with all flags. */
#include "vformat.h"

#include "vformat_pieces.h"

/* Writes digits of 2^bits backwards from `end`; none for 0. Returns the first digit. */
static char *put_bits(char *end, uintmax_t value, unsigned bits, const char *alphabet)
{
    for (; value; value >>= bits)
        *--end = alphabet[value & ((1u << bits) - 1)];
    return end;
}

static void put_hex(struct weir__text *text, const struct weir__spec *spec, struct weir__pieces *pieces,
                    uintmax_t value)
{
    char digits[16], *end = digits + sizeof digits;
    bool capital = spec->conversion == 'X';
    char *start = put_bits(end, value, 4, capital ? "0123456789ABCDEF" : "0123456789abcdef");
    if (value && (spec->flags & WEIR_ALTERNATIVE || spec->conversion == 'p')) {
        weir__add_prefix(pieces, '0');
        weir__add_prefix(pieces, capital ? 'X' : 'x');
    }
    if (value == 0 && spec->precision != 0)
        *--start = '0';
    pieces->body = start;
    pieces->body_bytes = (size_t)(end - start);
    weir__set_zeros(pieces, spec);
    weir__put_pieces(text, spec, pieces);
}

/* The alternative form begins with a 0, which counts as a digit. */
static void put_octal(struct weir__text *text, const struct weir__spec *spec, uintmax_t value)
{
    char digits[23], *end = digits + sizeof digits;
    char *start = put_bits(end, value, 3, "01234567");
    if (spec->flags & WEIR_ALTERNATIVE || (value == 0 && spec->precision != 0))
        *--start = '0';
    struct weir__pieces pieces = {.body = start, .body_bytes = (size_t)(end - start)};
    weir__set_zeros(&pieces, spec);
    weir__put_pieces(text, spec, &pieces);
}

static void put_decimal(struct weir__text *text, const struct weir__spec *spec, char sign, uint64_t value)
{
    char digits[WEIR_INT_BYTES];
    struct weir__pieces pieces = {.body = digits};
    if (sign)
        weir__add_prefix(&pieces, sign);
    if (value != 0 || spec->precision != 0)
        pieces.body_bytes = weir__format_u64(digits, value);
    weir__set_zeros(&pieces, spec);
    weir__put_pieces(text, spec, &pieces);
}

void weir__put_signed(struct weir__text *text, const struct weir__spec *spec, intmax_t value)
{
    uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    put_decimal(text, spec, weir__sign_of(spec, value < 0), magnitude);
}

void weir__put_unsigned(struct weir__text *text, const struct weir__spec *spec, uintmax_t value)
{
    struct weir__pieces pieces = {.body = NULL};
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
    struct weir__pieces pieces = {.body = "(nil)", .body_bytes = 5};
    char sign = weir__sign_of(spec, false);
    if (!value) {
        weir__put_pieces(text, spec, &pieces);
        return;
    }
    if (sign)
        weir__add_prefix(&pieces, sign);
    put_hex(text, spec, &pieces, (uintptr_t)value);
}

void weir__put_char(struct weir__text *text, const struct weir__spec *spec, int value)
{
    char byte = (char)value;
    struct weir__pieces pieces = {.body = &byte, .body_bytes = 1};
    weir__put_pieces(text, spec, &pieces);
}

void weir__put_string(struct weir__text *text, const struct weir__spec *spec, const char *value)
{
    struct weir__pieces pieces = {.body = value};
    if (!value) /* as glibc: complete or not at all */
        pieces.body = spec->precision < 0 || spec->precision >= 6 ? "(null)" : "";
    size_t max = spec->precision < 0 ? SIZE_MAX : (size_t)spec->precision;
    pieces.body_bytes = max == SIZE_MAX ? strlen(pieces.body) : strnlen(pieces.body, max);
    weir__put_pieces(text, spec, &pieces);
}
