/* vformat.h: what the files of weir__vformat share. Private. */
#ifndef WEIR_VFORMAT_H
#define WEIR_VFORMAT_H

#include <stdbool.h>
#include <wchar.h>

#include "format.h"

/* A step returns 0, -errno, or this: the C library is to format the whole. */
#define WEIR_UNSUPPORTED 1

/* The output so far. Nothing is written from `room` on, but the length goes on. */
struct weir__text {
    char *to; /* may be NULL if room is 0 */
    size_t room;
    size_t length;
};

/* A structure, because a va_list that is a parameter cannot be passed on by its address. */
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

/* One conversion, such as %-8.3f. */
struct weir__spec {
    unsigned flags;
    int width;     /* >= 0 */
    int precision; /* -1: none */
    enum weir__argument_size size;
    char conversion;
};

static inline size_t weir__space_left(const struct weir__text *text)
{
    return text->length < text->room ? text->room - text->length : 0;
}

static inline void weir__append(struct weir__text *text, const void *from, size_t bytes)
{
    if (bytes - 1 < weir__space_left(text)) /* not for 0 bytes: `to` may be NULL then */
        memcpy(text->to + text->length, from, bytes);
    text->length += bytes;
}

/* vformat_spec.c */
/* Reads what is behind a '%', with the arguments of `*`, and moves *format behind it. -EINVAL: a %n. */
int weir__parse_spec(const char **format, struct weir__spec *spec, struct weir__arguments *arguments);
/* May the C library find a %n in it? For formats with things that only the C library understands. */
bool weir__may_store(const char *format);

/* vformat_put.c: the conversions that are ours */
void weir__put_signed(struct weir__text *text, const struct weir__spec *spec, intmax_t value);
void weir__put_unsigned(struct weir__text *text, const struct weir__spec *spec, uintmax_t value);
void weir__put_pointer(struct weir__text *text, const struct weir__spec *spec, const void *value);
void weir__put_char(struct weir__text *text, const struct weir__spec *spec, int value);
void weir__put_string(struct weir__text *text, const struct weir__spec *spec, const char *value);
int weir__put_fixed(struct weir__text *text, const struct weir__spec *spec, double value);

/* vformat_libc.c: those that the C library does for us. Each returns 0 or -errno. */
int weir__libc_double(struct weir__text *text, const struct weir__spec *spec, double value);
int weir__libc_long_double(struct weir__text *text, const struct weir__spec *spec, long double value);
int weir__libc_wide_char(struct weir__text *text, const struct weir__spec *spec, wint_t value);
int weir__libc_wide_string(struct weir__text *text, const struct weir__spec *spec, const wchar_t *value);
int weir__libc_whole(struct weir__text *text, const char *format, struct weir__arguments *arguments);

#endif /* WEIR_VFORMAT_H */
