/* vformat_spec.c: parses a conversion specification, and finds %n in formats for the C library. */
#include "vformat.h"

#include <errno.h>
#include <limits.h>

static unsigned flag(char c)
{
    switch (c) {
    case '-': return WEIR_LEFT;
    case '+': return WEIR_PLUS;
    case ' ': return WEIR_SPACE;
    case '#': return WEIR_ALTERNATIVE;
    case '0': return WEIR_ZERO;
    default: return 0;
    }
}

/* Parses the digits at *at; no digits give 0. */
static int parse_number(const char **at, int *number)
{
    unsigned value = 0;
    for (; **at >= '0' && **at <= '9'; ++*at) {
        unsigned digit = (unsigned)(**at - '0');
        if (value > (INT_MAX - digit) / 10)
            return -EOVERFLOW;
        value = value * 10 + digit;
    }
    *number = (int)value;
    return 0;
}

static int parse_width(const char **at, struct weir__spec *spec, struct weir__arguments *arguments)
{
    if (**at != '*')
        return parse_number(at, &spec->width);
    ++*at;
    spec->width = va_arg(arguments->list, int);
    if (spec->width >= 0)
        return 0;
    spec->flags |= WEIR_LEFT;
    if (spec->width == INT_MIN)
        return -EOVERFLOW;
    spec->width = -spec->width;
    return 0;
}

static int parse_precision(const char **at, struct weir__spec *spec, struct weir__arguments *arguments)
{
    spec->precision = -1;
    if (**at != '.')
        return 0;
    ++*at;
    if (**at != '*')
        return parse_number(at, &spec->precision);
    ++*at;
    int precision = va_arg(arguments->list, int);
    spec->precision = precision < 0 ? -1 : precision;
    return 0;
}

/* Parses a length modifier of one letter, or of two equal letters. */
static enum weir__argument_size take_size(const char **at, enum weir__argument_size once,
                                          enum weir__argument_size twice)
{
    char c = *(*at)++;
    if (twice == once || **at != c)
        return once;
    ++*at;
    return twice;
}

static enum weir__argument_size parse_size(const char **at)
{
    switch (**at) {
    case 'h': return take_size(at, WEIR_SIZE_SHORT, WEIR_SIZE_CHAR);
    case 'l': return take_size(at, WEIR_SIZE_LONG, WEIR_SIZE_LONG_LONG);
    case 'j': return take_size(at, WEIR_SIZE_MAX, WEIR_SIZE_MAX);
    case 'z': return take_size(at, WEIR_SIZE_SIZE, WEIR_SIZE_SIZE);
    case 't': return take_size(at, WEIR_SIZE_PTRDIFF, WEIR_SIZE_PTRDIFF);
    case 'L': return take_size(at, WEIR_SIZE_LONG_DOUBLE, WEIR_SIZE_LONG_DOUBLE);
    default: return WEIR_SIZE_INT;
    }
}

/* Returns whether C11 defines the conversion with this length modifier. */
static bool is_supported(const struct weir__spec *spec)
{
    bool plain = spec->size == WEIR_SIZE_INT, is_long = spec->size == WEIR_SIZE_LONG;
    switch (spec->conversion) {
    case 'd': case 'i': case 'o': case 'u': case 'x': case 'X': return spec->size != WEIR_SIZE_LONG_DOUBLE;
    case 'e': case 'E': case 'f': case 'F': case 'g': case 'G': case 'a': case 'A':
        return plain || is_long || spec->size == WEIR_SIZE_LONG_DOUBLE;
    case 'c': case 's': return plain || is_long;
    case 'p': return plain;
    default: return false;
    }
}

int weir__parse_spec(const char **format, struct weir__spec *spec, struct weir__arguments *arguments)
{
    const char *at = *format; /* a local copy stays in a register */
    int result;
    spec->flags = 0;
    for (unsigned found; (found = flag(*at)) != 0; at++)
        spec->flags |= found;
    if ((result = parse_width(&at, spec, arguments)) != 0 ||
        (result = parse_precision(&at, spec, arguments)) != 0)
        return result;
    spec->size = parse_size(&at);
    spec->conversion = *at;
    if (spec->conversion == 'n')
        return -EINVAL;
    if (!is_supported(spec))
        return WEIR_UNSUPPORTED;
    *format = at + 1;
    return 0;
}

/* ---- formats for the C library ---- */

#define DIGITS "0123456789"
#define FLAGS "-+ #0'I"
#define SIZES "hlLqjzZt"

static bool is_of(const char *set, char c)
{
    return c != '\0' && strchr(set, c) != NULL;
}

/* Skips all characters of the set. strspn(3) builds a table first, which takes longer than the rest of this
 * file. */
static const char *skip_all(const char *at, const char *set)
{
    while (is_of(set, *at))
        at++;
    return at;
}

/* Skips 123, * or *12$. */
static const char *skip_number(const char *at)
{
    bool star = *at == '*';
    at += star;
    at = skip_all(at, DIGITS);
    return star && *at == '$' ? at + 1 : at;
}

/* Skips a conversion, from behind the '%'. Returns its letter, or 0 if the conversion is not known: the C
 * library might then end it elsewhere. */
static char skip_conversion(const char **at)
{
    const char *start = *at, *p = skip_all(start, DIGITS);
    p = *p == '$' ? p + 1 : start;
    p = skip_all(p, FLAGS);
    p = skip_number(p);
    if (*p == '.')
        p = skip_number(p + 1);
    p = skip_all(p, SIZES);
    if (!is_of("diouxXcspfFeEgGaAmCSbBn%", *p) || (*p == '%' && p != start))
        return 0;
    *at = p + 1;
    return *p;
}

/* Returns whether any '%' is followed by characters of a specification and then by n. This finds too many
 * ("50 %% now") and misses none. w and wf are length modifiers of C23. */
static bool any_may_store(const char *format)
{
    while ((format = strchr(format, '%')) != NULL) {
        const char *p = ++format;
        do
            p = skip_all(p, DIGITS FLAGS SIZES "*$.w");
        while (*p == 'f' && p[-1] == 'w' && *++p);
        if (*p == 'n')
            return true;
    }
    return false;
}

bool weir__may_store(const char *format)
{
    const char *at = format;
    while ((at = strchr(at, '%')) != NULL) {
        at++;
        char conversion = skip_conversion(&at);
        if (conversion == 'n')
            return true;
        if (conversion == 0)
            return any_may_store(format);
    }
    return false;
}
