/* vformat.c: interprets a printf format and performs its conversions. */
#include "vformat.h"

#include <errno.h>
#include <limits.h>

/* Appends text up to the next '%' or the end. Returns its address. */
static const char *put_literal(struct weir__text *text, const char *at)
{
    const char *end = strchrnul(at, '%');
    weir__append(text, at, (size_t)(end - at));
    return end;
}

static intmax_t signed_argument(enum weir__argument_size size, struct weir__arguments *arguments)
{
    switch (size) {
    case WEIR_SIZE_CHAR: return (signed char)va_arg(arguments->list, int);
    case WEIR_SIZE_SHORT: return (short)va_arg(arguments->list, int);
    case WEIR_SIZE_LONG: return va_arg(arguments->list, long);
    case WEIR_SIZE_LONG_LONG: return va_arg(arguments->list, long long);
    case WEIR_SIZE_MAX: return va_arg(arguments->list, intmax_t);
    case WEIR_SIZE_SIZE: return va_arg(arguments->list, ssize_t);
    case WEIR_SIZE_PTRDIFF: return va_arg(arguments->list, ptrdiff_t);
    default: return va_arg(arguments->list, int);
    }
}

static uintmax_t unsigned_argument(enum weir__argument_size size, struct weir__arguments *arguments)
{
    switch (size) {
    case WEIR_SIZE_CHAR: return (unsigned char)va_arg(arguments->list, unsigned);
    case WEIR_SIZE_SHORT: return (unsigned short)va_arg(arguments->list, unsigned);
    case WEIR_SIZE_LONG: return va_arg(arguments->list, unsigned long);
    case WEIR_SIZE_LONG_LONG: return va_arg(arguments->list, unsigned long long);
    case WEIR_SIZE_MAX: return va_arg(arguments->list, uintmax_t);
    case WEIR_SIZE_SIZE: return va_arg(arguments->list, size_t);
    case WEIR_SIZE_PTRDIFF: return (uintmax_t)va_arg(arguments->list, ptrdiff_t);
    default: return va_arg(arguments->list, unsigned);
    }
}

static int put_floating(struct weir__text *text, const struct weir__spec *spec,
                        struct weir__arguments *arguments)
{
    if (spec->size == WEIR_SIZE_LONG_DOUBLE)
        return weir__libc_long_double(text, spec, va_arg(arguments->list, long double));
    return weir__put_double(text, spec, va_arg(arguments->list, double));
}

static int put_char(struct weir__text *text, const struct weir__spec *spec, struct weir__arguments *arguments)
{
    if (spec->size == WEIR_SIZE_LONG)
        return weir__libc_wide_char(text, spec, va_arg(arguments->list, wint_t));
    weir__put_char(text, spec, va_arg(arguments->list, int));
    return 0;
}

static int put_string(struct weir__text *text, const struct weir__spec *spec,
                      struct weir__arguments *arguments)
{
    if (spec->size == WEIR_SIZE_LONG)
        return weir__libc_wide_string(text, spec, va_arg(arguments->list, const wchar_t *));
    weir__put_string(text, spec, va_arg(arguments->list, const char *));
    return 0;
}

/* Performs any conversion. *at points behind the '%'. */
static int put_conversion(struct weir__text *text, const char **at, struct weir__arguments *arguments)
{
    struct weir__spec spec;
    int result = weir__parse_spec(at, &spec, arguments);
    if (result != 0)
        return result;
    switch (spec.conversion) {
    case 'd': case 'i':
        weir__put_signed(text, &spec, signed_argument(spec.size, arguments));
        return 0;
    case 'u': case 'o': case 'x': case 'X':
        weir__put_unsigned(text, &spec, unsigned_argument(spec.size, arguments));
        return 0;
    case 'p':
        weir__put_pointer(text, &spec, va_arg(arguments->list, const void *));
        return 0;
    case 'c': return put_char(text, &spec, arguments);
    case 's': return put_string(text, &spec, arguments);
    default: return put_floating(text, &spec, arguments);
    }
}

static void put_integer(struct weir__text *text, int64_t value)
{
    char digits[WEIR_INT_BYTES];
    if (weir__space_left(text) >= WEIR_INT_BYTES)
        text->length += weir__format_i64(text->to + text->length, value);
    else
        weir__append(text, digits, weir__format_i64(digits, value));
}

/* Performs the frequent conversions without flags, width and precision, and passes on all others. *at
 * points behind the '%'. */
static inline int put_next(struct weir__text *text, const char **at, struct weir__arguments *arguments)
{
    static const struct weir__spec plain_fixed = {.precision = 6, .conversion = 'f'};
    const char *string;
    char byte;
    switch (*(*at)++) {
    case 's':
        string = va_arg(arguments->list, const char *);
        if (!string)
            string = "(null)";
        weir__append(text, string, strlen(string));
        return 0;
    case 'd':
        put_integer(text, va_arg(arguments->list, int));
        return 0;
    case 'l':
        if (**at != 'd') {
            --*at;
            return put_conversion(text, at, arguments);
        }
        ++*at;
        put_integer(text, va_arg(arguments->list, long));
        return 0;
    case 'u':
        put_integer(text, va_arg(arguments->list, unsigned));
        return 0;
    case 'c':
        byte = (char)va_arg(arguments->list, int);
        weir__append(text, &byte, 1);
        return 0;
    case 'f': return weir__put_double(text, &plain_fixed, va_arg(arguments->list, double));
    case '%':
        weir__append(text, "%", 1);
        return 0;
    default:
        --*at;
        return put_conversion(text, at, arguments);
    }
}

/* Formats the rest of a text that may not fit. */
static int put_rest(struct weir__text *text, const char *format, struct weir__arguments *arguments)
{
    for (;;) {
        if (*format)
            format = put_literal(text, format);
        if (text->length > INT_MAX)
            return -EOVERFLOW;
        if (*format == '\0')
            return 0;
        format++;
        int result = put_next(text, &format, arguments);
        if (result != 0)
            return result;
    }
}

/* The position in the format and in the text. Passed and returned by value, so that it stays in registers: a store
 * to the text could change what a pointer refers to, as far as the compiler knows. */
struct position {
    const char *format;
    char *to;
};

/* Copies text up to the next '%' or the end, or less if it does not fit before `end`. Most runs are so short that
 * calls of strchrnul(3) and memcpy(3) take longer than the loop. */
static inline struct position copy_literal(struct position at, const char *end)
{
    enum { SHORT = 3 };
    for (int i = 0; i < SHORT && at.to < end; i++) {
        if (*at.format == '%' || *at.format == '\0')
            return at;
        *at.to++ = *at.format++;
    }
    if (*at.format == '%' || *at.format == '\0')
        return at;
    const char *stop = strchrnul(at.format, '%');
    size_t bytes = (size_t)(stop - at.format);
    if (bytes > (size_t)(end - at.to))
        return at;
    memcpy(at.to, at.format, bytes);
    return (struct position){stop, at.to + bytes};
}

/* Performs a frequent conversion without a call through `text`. Returns the unchanged position for all others.
 * Requires room for an integer. */
static inline struct position copy_conversion(struct position at, struct weir__arguments *arguments)
{
    switch (at.format[1]) {
    case 'd':
        at.to += weir__format_i64(at.to, va_arg(arguments->list, int));
        break;
    case 'u':
        at.to += weir__format_u64(at.to, va_arg(arguments->list, unsigned));
        break;
    case 'c':
        *at.to++ = (char)va_arg(arguments->list, int);
        break;
    case 'l':
        if (at.format[2] != 'd')
            return at;
        at.to += weir__format_i64(at.to, va_arg(arguments->list, long));
        at.format++;
        break;
    default: return at;
    }
    at.format += 2;
    return at;
}

int weir__format_text(struct weir__text *text, const char *format, struct weir__arguments *arguments)
{
    if (text->room == 0)
        return put_rest(text, format, arguments);
    const char *end = text->to + text->room;
    struct position at = {format, text->to};
    for (;;) {
        at = copy_literal(at, end);
        if (*at.format == '%' && end - at.to >= WEIR_INT_BYTES) {
            const char *before = at.format;
            at = copy_conversion(at, arguments);
            if (at.format != before)
                continue;
        }
        text->length = (size_t)(at.to - text->to);
        if (*at.format == '\0' && text->length <= INT_MAX)
            return 0;
        if (*at.format != '%')
            return put_rest(text, at.format, arguments);
        format = at.format + 1;
        int result = put_next(text, &format, arguments);
        if (result != 0)
            return result;
        if (text->length > text->room)
            return put_rest(text, format, arguments);
        at = (struct position){format, text->to + text->length};
    }
}

ssize_t weir__vformat(char *to, size_t room, const char *format, va_list arguments)
{
    struct weir__text text = {to, room, 0};
    struct weir__arguments copy, whole;
    va_copy(copy.list, arguments);
    int result = weir__format_text(&text, format, &copy);
    va_end(copy.list);
    if (result == WEIR_UNSUPPORTED) {
        text.length = 0;
        va_copy(whole.list, arguments);
        result = weir__libc_whole(&text, format, &whole);
        va_end(whole.list);
    }
    return result < 0 ? result : (ssize_t)text.length;
}
