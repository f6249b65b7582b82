/* vformat_pieces.h: a formatted field with its sign, padding and zeros. */
#ifndef WEIR_VFORMAT_PIECES_H
#define WEIR_VFORMAT_PIECES_H

#include "vformat.h"

/* The parts of a formatted field, from left to right: [spaces] prefix zeros body [spaces]. */
struct weir__pieces {
    char prefix[3]; /* sign, 0x, or both */
    size_t prefix_bytes;
    size_t zeros;
    const char *body;
    size_t body_bytes;
};

/* Fills and returns the end. Usually `bytes` is 0; the test avoids a call of memset(3). */
static inline char *weir__repeat(char *to, int c, size_t bytes)
{
    if (bytes)
        memset(to, c, bytes);
    return to + bytes;
}

static inline void weir__put_pieces(struct weir__text *text, const struct weir__spec *spec, const struct weir__pieces *pieces)
{
    size_t bytes = pieces->prefix_bytes + pieces->zeros + pieces->body_bytes;
    size_t spaces = (size_t)spec->width > bytes ? (size_t)spec->width - bytes : 0;
    size_t left = weir__space_left(text), before = spec->flags & WEIR_LEFT ? 0 : spaces;
    if (bytes + spaces <= left && left) {
        char *to = weir__repeat(text->to + text->length, ' ', before);
        for (size_t i = 0; i < pieces->prefix_bytes; i++)
            *to++ = pieces->prefix[i];
        to = weir__repeat(to, '0', pieces->zeros);
        memcpy(to, pieces->body, pieces->body_bytes);
        weir__repeat(to + pieces->body_bytes, ' ', spaces - before);
    }
    text->length += bytes + spaces;
}

/* Returns 0 if there is no sign. */
static inline char weir__sign_of(const struct weir__spec *spec, bool negative)
{
    if (negative)
        return '-';
    return spec->flags & WEIR_PLUS ? '+' : spec->flags & WEIR_SPACE ? ' ' : 0;
}

static inline void weir__add_prefix(struct weir__pieces *pieces, char c)
{
    pieces->prefix[pieces->prefix_bytes++] = c;
}

/* Fills the field's width with zeros, if its flags say so. */
static inline void weir__set_field_zeros(struct weir__pieces *pieces, const struct weir__spec *spec)
{
    size_t width = (size_t)spec->width, has = pieces->body_bytes + pieces->prefix_bytes;
    if ((spec->flags & (WEIR_ZERO | WEIR_LEFT)) == WEIR_ZERO && width > has)
        pieces->zeros = width - has;
}

/* The zeros of an integer: of its precision or, without one, of the field's width. */
static inline void weir__set_zeros(struct weir__pieces *pieces, const struct weir__spec *spec)
{
    size_t wanted = spec->precision > 0 ? (size_t)spec->precision : 0;
    if (spec->precision < 0)
        weir__set_field_zeros(pieces, spec);
    else
        pieces->zeros = wanted > pieces->body_bytes ? wanted - pieces->body_bytes : 0;
}

#endif /* WEIR_VFORMAT_PIECES_H */
