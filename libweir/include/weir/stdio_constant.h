/* weir/stdio_constant.h: inline versions of output calls whose bytes are known to the compiler, such as
 * printf("hello\n"). Part of weir/stdio.h; do not include it directly. */
#ifndef WEIR_STDIO_CONSTANT_H
#define WEIR_STDIO_CONSTANT_H

#include "stdio.h"

#if defined(__GNUC__) && defined(__OPTIMIZE__)
/* Is always inlined, also if optimization is off in the caller. The address of such a function is the library's. */
#define WEIR_STDIO_WRAPPER extern __inline__ __attribute__((__gnu_inline__, __always_inline__))
/* The most bytes that an inline copy is made of. */
#define WEIR_STDIO_SHORT 64
/* True if the compiler knows the length of the string, and it is short. */
#define WEIR_STDIO_IS_SHORT(string) \
    (__builtin_constant_p(__builtin_strlen(string)) && __builtin_strlen(string) <= WEIR_STDIO_SHORT)

/* The library's functions, under names that are not wrapped. */
extern int weir_stdio_call_fputs(const char *string, weir_stream *s) __asm__("weir_stdio_fputs");
extern int weir_stdio_call_puts(const char *string) __asm__("weir_stdio_puts");
extern size_t weir_stdio_call_fwrite(const void *from, size_t size, size_t count, weir_stream *s)
    __asm__("weir_stdio_fwrite");
extern int weir_stdio_call_printf(const char *format, ...) __asm__("weir_stdio_printf");
extern int weir_stdio_call_fprintf(weir_stream *s, const char *format, ...) __asm__("weir_stdio_fprintf");

#if defined(__cplusplus) && defined(__GNUC__) /* as in weir.h */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast"
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuseless-cast"
#endif
#endif

/* Appends the bytes and perhaps a newline if the stream allows the inline calls. Returns whether it did. */
WEIR_STDIO_WRAPPER int weir_stdio_store(weir_stream *s, const void *from, size_t bytes, int newline)
{
    uint64_t at = WEIR_LOAD(&s->head.written), end = at + bytes + (newline != 0);
    if (!WEIR_LIKELY(WEIR_ONE_THREAD() && end <= WEIR_LOAD(&s->held_limit)))
        return 0;
    if (bytes) /* of a stream without a buffer `at` is NULL, which memcpy(3) does not take */
        memcpy((char *)(uintptr_t)at, from, bytes);
    if (newline)
        ((char *)(uintptr_t)at)[bytes] = '\n';
    WEIR_PUBLISH(&s->head.written, end);
    return 1;
}

/* Returns the variable stdout. */
WEIR_STDIO_WRAPPER weir_stream *weir_stdio_output(void)
{
    weir_stream *s = WEIR_STDIO_LOAD(&weir_stdio_files[1]);
    return WEIR_LIKELY(s != NULL) ? s : weir_stdio_standard(1);
}

WEIR_STDIO_WRAPPER int weir_stdio_fputs(const char *string, weir_stream *s)
{
    if (WEIR_STDIO_IS_SHORT(string) && weir_stdio_store(s, string, __builtin_strlen(string), 0))
        return 1;
    return weir_stdio_call_fputs(string, s);
}

WEIR_STDIO_WRAPPER int weir_stdio_puts(const char *string)
{
    if (WEIR_STDIO_IS_SHORT(string) && weir_stdio_store(weir_stdio_output(), string, __builtin_strlen(string), 1))
        return 1;
    return weir_stdio_call_puts(string);
}

WEIR_STDIO_WRAPPER size_t weir_stdio_fwrite(const void *from, size_t size, size_t count, weir_stream *s)
{
    if (__builtin_constant_p(size) && __builtin_constant_p(count) && size - 1 < WEIR_STDIO_SHORT &&
        count - 1 < WEIR_STDIO_SHORT && size * count <= WEIR_STDIO_SHORT && weir_stdio_store(s, from, size * count, 0))
        return count;
    return weir_stdio_call_fwrite(from, size, count, s);
}

#ifndef __clang__ /* which cannot pass the arguments on */
#define WEIR_STDIO_IS_TEXT(format) (WEIR_STDIO_IS_SHORT(format) && !__builtin_strchr(format, '%'))
#define WEIR_STDIO_IS_STRING(format) (WEIR_STDIO_IS_SHORT(format) && __builtin_strcmp(format, "%s") == 0)

WEIR_STDIO_WRAPPER int weir_stdio_fprintf(weir_stream *s, const char *format, ...)
{
    if (__builtin_va_arg_pack_len() == 0 && WEIR_STDIO_IS_TEXT(format) &&
        weir_stdio_store(s, format, __builtin_strlen(format), 0))
        return (int)__builtin_strlen(format);
    if (__builtin_va_arg_pack_len() == 1 && WEIR_STDIO_IS_STRING(format))
        return weir_stdio_print_string(s, __builtin_va_arg_pack());
    return weir_stdio_call_fprintf(s, format, __builtin_va_arg_pack());
}

WEIR_STDIO_WRAPPER int weir_stdio_printf(const char *format, ...)
{
    if (__builtin_va_arg_pack_len() == 0 && WEIR_STDIO_IS_TEXT(format) &&
        weir_stdio_store(weir_stdio_output(), format, __builtin_strlen(format), 0))
        return (int)__builtin_strlen(format);
    if (__builtin_va_arg_pack_len() == 1 && WEIR_STDIO_IS_STRING(format))
        return weir_stdio_print_string(weir_stdio_output(), __builtin_va_arg_pack());
    return weir_stdio_call_printf(format, __builtin_va_arg_pack());
}
#endif
#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif
#endif
#endif /* WEIR_STDIO_CONSTANT_H */
