/* format_differential.c: compares weir__vformat with the C library's vsnprintf, for random formats and arguments.
 *
 * x86-64 and aarch64 pass the integers and the doubles of a variable argument list separately, each integer in a slot
 * of 8 bytes. So one call with enough of both serves every format. Long doubles have separate calls, because they use
 * the slots of the integers. */
#include <limits.h>
#include <locale.h>
#include <stdint.h>
#include <wchar.h>

#include "format_check.h"

enum { WORDS = 12, NUMBERS = 4, ROOM = 16384 };

struct sample {
    char format[512];
    size_t bytes; /* length of the format */
    uint64_t word[WORDS];
    unsigned words;
    double number[NUMBERS];
    unsigned numbers;
};

static void add(struct sample *s, const char *text)
{
    size_t bytes = strlen(text);
    memcpy(s->format + s->bytes, text, bytes + 1);
    s->bytes += bytes;
}

static void add_char(struct sample *s, char c)
{
    add(s, (char[]){c, '\0'});
}

static void add_number(struct sample *s, unsigned value)
{
    char digits[12];
    sprintf(digits, "%u", value);
    add(s, digits);
}

static void add_word(struct sample *s, uint64_t word)
{
    s->word[s->words++] = word;
}

static uint64_t random_integer(void)
{
    static const uint64_t edges[] = {
        0, 1, 9, 10, 99, 100, 127, 128, 255, 256, 32767, 32768, 65535, 65536, INT_MAX,
        INT_MAX + UINT64_C(1), UINT_MAX, UINT_MAX + UINT64_C(1), INT64_MAX, INT64_MAX + UINT64_C(1),
        UINT64_MAX, 9999, 10000, 99999999, 100000000, UINT64_C(9999999999999999999),
        UINT64_C(10000000000000000000),
    };
    uint64_t value = below(3) ? random_bits() >> below(64) : edges[below(sizeof edges / sizeof *edges)];
    return below(3) ? value : 0 - value;
}

static void add_literal(struct sample *s)
{
    static const char *const texts[] = {
        "", "", " ", ": ", "a", "n", "%%", "\n", "\xc3\xbc", "0123456789abcde", "0123456789abcdef",
        "0123456789abcdefg", "a text that is longer than what is copied byte by byte ",
    };
    add(s, texts[below(sizeof texts / sizeof *texts)]);
}

static void add_flags(struct sample *s)
{
    while (below(3) == 0)
        add_char(s, "-+ #0"[below(5)]);
}

static void add_width(struct sample *s)
{
    switch (below(6)) {
    case 0: add_number(s, below(30) + 1); break;
    case 1: add_number(s, below(400) + 1); break;
    case 2:
        add_char(s, '*');
        add_word(s, (uint64_t)((int64_t)below(80) - 40));
        break;
    default: break;
    }
}

/* Returns the precision, or -1. */
static int add_precision(struct sample *s)
{
    unsigned most = below(20) ? 24 : 400;
    int precision = -1;
    switch (below(6)) {
    case 0: add_char(s, '.'); precision = 0; break;
    case 1:
        precision = (int)below(most) - 4;
        add(s, ".*");
        add_word(s, (uint64_t)(int64_t)precision);
        break;
    case 2: case 3:
        precision = (int)below(most);
        add_char(s, '.');
        add_number(s, (unsigned)precision);
        break;
    default: break;
    }
    return precision;
}

static void add_integer(struct sample *s)
{
    static const char *const sizes[] = {"", "", "", "hh", "h", "l", "ll", "j", "z", "t"};
    add(s, sizes[below(sizeof sizes / sizeof *sizes)]);
    add_char(s, "ddiuoxX"[below(7)]);
    add_word(s, random_integer());
}

static void add_double(struct sample *s, int precision)
{
    add(s, below(5) ? "" : "l");
    add_char(s, below(2) ? 'f' : "fFeEgGaA"[below(8)]);
    int digits = precision < 0 ? 6 : precision;
    s->number[s->numbers++] = below(4) || digits > 50 ? random_double() : random_tie(digits);
}

/* Only glibc documents the flag 0 for a wide character. */
static bool can_be_wide(const struct sample *s)
{
#ifdef __GLIBC__
    (void)s;
    return true;
#else
    return strchr(strrchr(s->format, '%'), '0') == NULL;
#endif
}

static void add_text(struct sample *s)
{
    static const char *const texts[] = {
        "", "a", "hello", "/var/log/app.log", "with\nnewline %d %n \xff", NULL,
        "a text that is longer than what the room for one conversion could be",
    };
    static const wchar_t *const wide[] = {L"", L"wide", L"\u00fc\u20ac", L"\U0001f600", NULL};
    unsigned wides = sizeof wide / sizeof *wide;
#ifndef __GLIBC__ /* other libraries crash at a NULL for %ls, and a precision truncates their (null) */
    wides--;
#endif
    if (below(10) == 0 && can_be_wide(s)) {
        add(s, "ls");
        add_word(s, (uintptr_t)wide[below(wides)]);
    } else {
        const char *text = texts[below(sizeof texts / sizeof *texts)];
#ifndef __GLIBC__
        text = text ? text : "";
#endif
        add_char(s, 's');
        add_word(s, (uintptr_t)text);
    }
}

static void add_other(struct sample *s)
{
    switch (below(3)) {
    case 0:
        add(s, can_be_wide(s) ? "lc" : "c");
        add_word(s, below(3) ? below(0x300) : below(0x120000));
        break;
    case 1:
        add_char(s, 'c');
        add_word(s, random_bits());
        break;
    default:
#ifdef __GLIBC__ /* in other libraries %p has different zeros and signs */
        add_char(s, 'p');
#else
        add_char(s, 'x');
#endif
        add_word(s, below(5) ? random_bits() >> below(64) : 0);
    }
}

/* Adds a conversion for which the C library formats the whole. It takes no argument, or integers. */
static void add_extension(struct sample *s)
{
    static const char *const with_word[] = {"%'d", "%qd", "%Lu", "%Zx", "%I5d", "%C", "%hhhd", "%l-d"};
    static const char *const without[] = {"%m", "%y", "%5%", "%", "%-", "%.", "%l", "%h%", "% "};
    if (below(2)) {
        add(s, with_word[below(sizeof with_word / sizeof *with_word)]);
        add_word(s, random_bits() >> 57);
        add_word(s, random_bits() >> 57);
    } else {
        add(s, without[below(sizeof without / sizeof *without)]);
    }
}

static void add_conversion(struct sample *s)
{
    static const char not_ended[3] = {'a', 'b', 'c'};
    if (below(40) == 0) {
        add(s, below(2) ? "%.3s" : "%-8.2s");
        add_word(s, (uintptr_t)not_ended);
        return;
    }
    add_char(s, '%');
    if (below(3)) /* else a plain conversion: %s %d %f */
        add_flags(s), add_width(s);
    int precision = below(3) ? add_precision(s) : -1;
    switch (below(8)) {
    case 0: case 1: case 2: add_integer(s); break;
    case 3: case 4: case 5:
        if (s->numbers < NUMBERS) {
            add_double(s, precision);
            break;
        }
        /* fall through */
    case 6: add_text(s); break;
    default: add_other(s); break;
    }
}

static void make_sample(struct sample *s)
{
    s->bytes = s->words = s->numbers = 0;
    s->format[0] = '\0';
    add_literal(s);
    for (unsigned left = below(8) ? 1 + below(3) : below(2) * 4; left > 0; left--) {
        add_conversion(s);
        add_literal(s);
    }
    if (below(200) == 0 && s->words + 2 <= WORDS)
        add_extension(s);
    memset(s->word + s->words, 0, (WORDS - s->words) * sizeof *s->word);
    memset(s->number + s->numbers, 0, (NUMBERS - s->numbers) * sizeof *s->number);
}

#define ALL_WORDS(s) \
    s->word[0], s->word[1], s->word[2], s->word[3], s->word[4], s->word[5], s->word[6], s->word[7], \
    s->word[8], s->word[9], s->word[10], s->word[11]
#define ALL_NUMBERS(s) s->number[0], s->number[1], s->number[2], s->number[3]

static void report(const char *format, const char *want, ssize_t expected, const char *have, ssize_t bytes)
{
    expect(false, "format \"%s\"\n    is %zd \"%.*s\"\n  want %zd \"%.*s\"", format, bytes,
           bytes < 0 ? 0 : (int)bytes, have, expected, expected < 0 ? 0 : (int)expected, want);
}

static void compare(const struct sample *s)
{
    static char want[ROOM], have[ROOM];
    ssize_t expected = libc_format(want, ROOM, s->format, ALL_WORDS(s), ALL_NUMBERS(s));
    ssize_t bytes = weir_format(have, ROOM, s->format, ALL_WORDS(s), ALL_NUMBERS(s));
    if (bytes != expected || (bytes > 0 && bytes < ROOM && memcmp(want, have, (size_t)bytes) != 0))
        report(s->format, want, expected, have, bytes);
    else
        expect(true, "equal");
}

static void run(const char *test, uint64_t rounds)
{
    struct sample sample;
    begin(test);
    for (uint64_t i = 0; i < rounds; i++) {
        make_sample(&sample);
        compare(&sample);
    }
}

static long double random_long_double(void)
{
    long double value = random_double();
    return below(2) ? value : value * (1 + random_double() * 1e-17L);
}

static void compare_long_double(void)
{
    static char want[ROOM], have[ROOM];
    struct sample s = {.bytes = 0};
    add_literal(&s);
    add_char(&s, '%');
    add_flags(&s);
    add(&s, "*.*L");
    add_char(&s, "fFeEgGaA"[below(8)]);
    add(&s, " %d %f");
    int width = (int)below(100) - 50, precision = (int)below(40) - 5, last = (int)random_bits();
    long double value = random_long_double();
    double number = random_double();
    ssize_t expected = libc_format(want, ROOM, s.format, width, precision, value, last, number);
    ssize_t bytes = weir_format(have, ROOM, s.format, width, precision, value, last, number);
    if (bytes != expected || (bytes > 0 && bytes < ROOM && memcmp(want, have, (size_t)bytes) != 0))
        report(s.format, want, expected, have, bytes);
    else
        expect(true, "equal");
}

int main(int argc, char **argv)
{
    uint64_t rounds = set_up_random(argc, argv, 2400000);
    run("C locale", rounds - rounds / 4);
    if (setlocale(LC_ALL, "C.UTF-8"))
        run("C.UTF-8", rounds / 4);
    else
        skip("C.UTF-8", "there is no such locale");
    begin("long double");
    for (uint64_t i = 0; i < rounds / 20; i++)
        compare_long_double();
    return finish("format_differential");
}
