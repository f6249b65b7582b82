/* vformat.h: private declarations of the files that implement weir__vformat. */
#ifndef WEIR_VFORMAT_H
#define WEIR_VFORMAT_H

#include <stdbool.h>
#include <wchar.h>

#include "format.h"

/* Result of a step: the C library must format the whole text. Other results: 0 or -errno. */
#define WEIR_UNSUPPORTED 1

/* The output. Nothing is stored beyond `room`, but `length` keeps counting. */
struct weir__text {
    char *to; /* may be NULL if room is 0 */
    size_t room;
    size_t length;
};

/* A structure, because a va_list parameter cannot be passed on by address. */
struct weir__arguments {
    va_list list;
};

enum { WEIR_LEFT = 1, WEIR_PLUS = 2, WEIR_SPACE = 4, WEIR_ALTERNATIVE = 8, WEIR_ZERO = 16 };

enum weir__argument_size {
    WEIR_SIZE_INT,
    WEIR_SIZE_CHAR,
    WEIR_SIZE_SHORT,
    WEIR_SIZE_LONG,
    WEIR_SIZE_LONG_LONG,
    WEIR_SIZE_MAX,
    WEIR_SIZE_SIZE,
    WEIR_SIZE_PTRDIFF,
    WEIR_SIZE_LONG_DOUBLE
};

/* A conversion specification, such as %-8.3f. */
struct weir__spec {
    unsigned flags;
    int width;     /* >= 0 */
    int precision; /* -1: not given */
    enum weir__argument_size size;
    char conversion;
};

static inline size_t weir__space_left(const struct weir__text *text)
{
    return text->length < text->room ? text->room - text->length : 0;
}

static inline void weir__append(struct weir__text *text, const void *from, size_t bytes)
{
    if (bytes - 1 < weir__space_left(text)) /* false for 0 bytes: `to` may be NULL */
        memcpy(text->to + text->length, from, bytes);
    text->length += bytes;
}

/* vformat.c */
/* Appends the formatted text and uses up the arguments. Returns 0, -errno as weir__vformat, or WEIR_UNSUPPORTED. A
 * function with its own `...` calls it before weir__vformat, which copies the va_list: copying one that was just
 * made stalls the processor. */
int weir__format_text(struct weir__text *text, const char *format, struct weir__arguments *arguments);

/* vformat_spec.c */
/* Parses a specification from behind the '%', takes the arguments of `*`, and moves *format behind it.
 * Returns -EINVAL for %n. */
int weir__parse_spec(const char **format, struct weir__spec *spec, struct weir__arguments *arguments);
/* Returns whether the C library could find a %n in the format. For formats that only the C library
 * understands. */
bool weir__may_store(const char *format);

/* vformat_put.c: conversions that libweir performs itself */
void weir__put_signed(struct weir__text *text, const struct weir__spec *spec, intmax_t value);
void weir__put_unsigned(struct weir__text *text, const struct weir__spec *spec, uintmax_t value);
void weir__put_pointer(struct weir__text *text, const struct weir__spec *spec, const void *value);
void weir__put_char(struct weir__text *text, const struct weir__spec *spec, int value);
void weir__put_string(struct weir__text *text, const struct weir__spec *spec, const char *value);
/* vformat_float.c. Leaves %a, a radix character of several bytes and other rounding modes to weir__libc_double. Returns 0 or
 * -errno. */
int weir__put_double(struct weir__text *text, const struct weir__spec *spec, double value);

/* vformat_libc.c: conversions by the C library. Each returns 0 or -errno. */
int weir__libc_double(struct weir__text *text, const struct weir__spec *spec, double value);
int weir__libc_long_double(struct weir__text *text, const struct weir__spec *spec, long double value);
int weir__libc_wide_char(struct weir__text *text, const struct weir__spec *spec, wint_t value);
int weir__libc_wide_string(struct weir__text *text, const struct weir__spec *spec, const wchar_t *value);
int weir__libc_whole(struct weir__text *text, const char *format, struct weir__arguments *arguments);

#endif /* WEIR_VFORMAT_H */
