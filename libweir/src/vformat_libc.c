/* vformat_libc.c: conversions by the C library.
 *
 * One conversion at a time: %e, %g, %a, long double, %lc, %ls, and %f if its digits depend on fesetround(3)
 * or its radix character has several bytes. The whole format if it contains anything that is not C11 (%1$d,
 * %'d, %m, %C …). With musl the output is musl's, and formats that it rejects return -EINVAL. */
#include "vformat.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

/* Called through a volatile pointer, so that the compiler does not substitute the function of
 * _FORTIFY_SOURCE, which aborts the program for some formats. */
static int (*const volatile print)(char *to, size_t room, const char *format, va_list arguments) = vsnprintf;

enum { ALL_FLAGS = WEIR_LEFT | WEIR_PLUS | WEIR_SPACE | WEIR_ALTERNATIVE | WEIR_ZERO };

/* Arguments of a call that can be repeated. `print` returns as snprintf(3). */
struct libc_call {
    int (*print)(const struct libc_call *call, char *to, size_t room);
    const char *format;
    const struct weir__spec *spec;
    struct weir__arguments *arguments;
    double number;
    long double long_number;
    wint_t wide_char;
    const wchar_t *wide_string;
};

/* Formats to temporary memory if the text fits `to` exactly, without room for the C library's NUL. */
static int print_to_temporary(const struct libc_call *call, char *to, size_t bytes)
{
    char small[512], *copy = bytes < sizeof small ? small : malloc(bytes + 1);
    if (!copy)
        return -ENOMEM;
    int again = call->print(call, copy, bytes + 1);
    if (again >= 0)
        memcpy(to, copy, bytes);
    int error = again < 0 ? -errno : 0;
    if (copy != small)
        free(copy);
    return error;
}

static int append_call(struct weir__text *text, const struct libc_call *call)
{
    size_t left = weir__space_left(text);
    int caller_errno = errno, error = 0; /* %m prints errno, and it must not change */
    if (left > INT_MAX)                  /* musl rejects more */
        left = INT_MAX;
    char *to = left ? text->to + text->length : NULL;
    int bytes = call->print(call, to, left);
    if (bytes < 0)
        error = errno ? -errno : -EINVAL;
    errno = caller_errno;
    if (bytes > 0 && (size_t)bytes == left)
        error = print_to_temporary(call, to, left);
    errno = caller_errno;
    if (bytes > 0)
        text->length += (size_t)bytes;
    return error;
}

/* ---- one conversion ---- */

static int print_one(char *to, size_t room, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int bytes = print(to, room, format, arguments);
    va_end(arguments);
    return bytes;
}

static int print_double(const struct libc_call *call, char *to, size_t room)
{
    return print_one(to, room, call->format, call->spec->width, call->spec->precision, call->number);
}

static int print_long_double(const struct libc_call *call, char *to, size_t room)
{
    return print_one(to, room, call->format, call->spec->width, call->spec->precision, call->long_number);
}

static int print_wide_char(const struct libc_call *call, char *to, size_t room)
{
    return print_one(to, room, call->format, call->spec->width, call->spec->precision, call->wide_char);
}

static int print_wide_string(const struct libc_call *call, char *to, size_t room)
{
    return print_one(to, room, call->format, call->spec->width, call->spec->precision, call->wide_string);
}

/* Formats one conversion. Width 0 and precision -1 have no effect. `known`: the flags that C11 defines for
 * it; others are undefined, and musl returns a wrong length for %05lc. */
static int append_conversion(struct weir__text *text, struct libc_call *call, unsigned known,
                             const char *size)
{
    char format[16], *at = format;
    unsigned flags = call->spec->flags & known;
    *at++ = '%';
    for (const char *all = "-+ #0"; *all; all++, flags >>= 1)
        if (flags & 1)
            *at++ = *all;
    at = stpcpy(stpcpy(at, "*.*"), size);
    *at++ = call->spec->conversion;
    *at = '\0';
    call->format = format;
    return append_call(text, call);
}

int weir__libc_double(struct weir__text *text, const struct weir__spec *spec, double value)
{
    struct libc_call call = {.print = print_double, .spec = spec, .number = value};
    return append_conversion(text, &call, ALL_FLAGS, "");
}

int weir__libc_long_double(struct weir__text *text, const struct weir__spec *spec, long double value)
{
    struct libc_call call = {.print = print_long_double, .spec = spec, .long_number = value};
    return append_conversion(text, &call, ALL_FLAGS, "L");
}

int weir__libc_wide_char(struct weir__text *text, const struct weir__spec *spec, wint_t value)
{
    struct libc_call call = {.print = print_wide_char, .spec = spec, .wide_char = value};
    return append_conversion(text, &call, WEIR_LEFT, "l");
}

int weir__libc_wide_string(struct weir__text *text, const struct weir__spec *spec, const wchar_t *value)
{
    struct libc_call call = {.print = print_wide_string, .spec = spec, .wide_string = value};
    return append_conversion(text, &call, WEIR_LEFT, "l");
}

/* ---- the whole format ---- */

static int print_whole(const struct libc_call *call, char *to, size_t room)
{
    struct weir__arguments copy;
    va_copy(copy.list, call->arguments->list);
    int bytes = print(to, room, call->format, copy.list);
    va_end(copy.list);
    return bytes;
}

int weir__libc_whole(struct weir__text *text, const char *format, struct weir__arguments *arguments)
{
    if (weir__may_store(format))
        return -EINVAL;
    struct libc_call call = {.print = print_whole, .format = format, .arguments = arguments};
    return append_call(text, &call);
}
