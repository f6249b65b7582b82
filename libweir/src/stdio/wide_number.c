/* wide_number.c: the numbers of wscanf. */
#include "wide_scan.h"

#include <limits.h>
#include <locale.h>
#include <stddef.h>

void weir__wide_store_integer(void *to, char length, unsigned long long value)
{
    switch (length) {
    case 'H': *(unsigned char *)to = (unsigned char)value; break;
    case 'h': *(unsigned short *)to = (unsigned short)value; break;
    case 'l': *(unsigned long *)to = (unsigned long)value; break;
    case 'Q': *(unsigned long long *)to = value; break;
    case 'j': *(uintmax_t *)to = value; break;
    case 'z': *(size_t *)to = (size_t)value; break;
    case 't': *(ptrdiff_t *)to = (ptrdiff_t)value; break;
    default: *(unsigned *)to = (unsigned)value;
    }
}

static bool is_digit(wint_t c, int base)
{
    if (c >= L'0' && c <= L'9')
        return (int)(c - L'0') < base;
    return base == 16 && ((c >= L'a' && c <= L'f') || (c >= L'A' && c <= L'F'));
}

/* A number while it is read: its characters, which all are ASCII, and how many more it may have. */
struct number {
    struct target text;
    int left;
    wint_t c; /* the next character, not taken yet; WEOF: none, or the width is used up */
    bool failed;
};

static void take(struct scan *scan, struct number *number)
{
    char byte = (char)number->c;
    number->failed |= !weir__wide_append(&number->text, &byte, 1);
    number->c = --number->left > 0 ? weir__wide_get(scan) : WEOF;
}

static bool take_if(struct scan *scan, struct number *number, const char *any)
{
    if (number->c == WEOF || number->c > 127 || number->c == 0 || !strchr(any, (int)number->c))
        return false;
    take(scan, number);
    return true;
}

static int take_digits(struct scan *scan, struct number *number, int base)
{
    int digits = 0;
    for (; is_digit(number->c, base); digits++)
        take(scan, number);
    return digits;
}

/* Takes a word in small or capital letters. */
static bool take_word(struct scan *scan, struct number *number, const char *word)
{
    for (; *word; word++) {
        const char either[] = {*word, (char)(*word - 'a' + 'A'), 0};
        if (!take_if(scan, number, either))
            return false;
    }
    return true;
}

static bool take_integer(struct scan *scan, struct number *number, int base)
{
    int digits = 0;
    take_if(scan, number, "+-");
    if ((base == 0 || base == 16) && take_if(scan, number, "0")) {
        digits = 1;
        if (take_if(scan, number, "xX")) /* glibc accepts it alone, as 0 */
            base = 16;
        else if (base == 0)
            base = 8;
    }
    return take_digits(scan, number, base ? base : 10) + digits > 0;
}

static bool take_float(struct scan *scan, struct number *number)
{
    wchar_t point = L'.';
    const char *locale = localeconv()->decimal_point;
    mbtowc(&point, locale, strlen(locale));
    take_if(scan, number, "+-");
    if (number->c == L'i' || number->c == L'I')
        return take_word(scan, number, "inf") &&
               ((number->c != L'i' && number->c != L'I') || take_word(scan, number, "inity"));
    if (number->c == L'n' || number->c == L'N')
        return take_word(scan, number, "nan");
    int base = 10, digits = take_if(scan, number, "0");
    bool has_point = false;
    if (digits && take_if(scan, number, "xX")) {
        base = 16;
        digits = 0;
    }
    digits += take_digits(scan, number, base);
    if (number->c != WEOF && number->c == (wint_t)point) {
        number->failed |= !weir__wide_append(&number->text, locale, strlen(locale));
        number->c = --number->left > 0 ? weir__wide_get(scan) : WEOF;
        digits += take_digits(scan, number, base);
        has_point = true;
    }
    if (digits && take_if(scan, number, base == 16 ? "pP" : "eE")) {
        take_if(scan, number, "+-");
        take_digits(scan, number, 10);
    }
    return digits > 0 || (base == 16 && has_point); /* glibc accepts "0x.", as 0 */
}

static void store_number(void *to, const struct directive *directive, const char *text)
{
    int error = errno;
    switch (directive->conversion) {
    case L'd': weir__wide_store_integer(to, directive->length, (unsigned long long)strtoll(text, NULL, 10)); break;
    case L'i': weir__wide_store_integer(to, directive->length, (unsigned long long)strtoll(text, NULL, 0)); break;
    case L'u': weir__wide_store_integer(to, directive->length, strtoull(text, NULL, 10)); break;
    case L'o': weir__wide_store_integer(to, directive->length, strtoull(text, NULL, 8)); break;
    case L'x':
    case L'X': weir__wide_store_integer(to, directive->length, strtoull(text, NULL, 16)); break;
    case L'p': *(void **)to = (void *)(uintptr_t)strtoull(text, NULL, 16); break;
    default:
        if (directive->length == 'Q')
            *(long double *)to = strtold(text, NULL);
        else if (directive->length == 'l')
            *(double *)to = strtod(text, NULL);
        else
            *(float *)to = strtof(text, NULL);
    }
    errno = error;
}

static int base_of(wchar_t conversion)
{
    return conversion == L'i' ? 0 : conversion == L'o' ? 8 : wcschr(L"xXp", conversion) ? 16 : 10;
}

enum outcome weir__wide_number(struct scan *scan, const struct directive *directive)
{
    struct number number = {.text = {.grows = true}, .left = directive->width ? directive->width : INT_MAX};
    number.c = weir__wide_get(scan);
    bool matched;
    if (directive->conversion == L'p' && number.c == L'(') /* as printf(3) prints it; the text is the number 0 */
        matched = take_if(scan, &number, "(") && take_word(scan, &number, "nil") && take_if(scan, &number, ")");
    else if (wcschr(L"diouxXp", directive->conversion))
        matched = take_integer(scan, &number, base_of(directive->conversion));
    else
        matched = take_float(scan, &number);
    weir__wide_unget(scan, number.c);
    number.failed |= !weir__wide_append(&number.text, "", 1);
    if (matched && !number.failed && !directive->suppressed) {
        store_number(weir__wide_argument(scan, directive), directive, number.text.bytes);
        scan->assigned++;
    }
    free(number.text.bytes);
    return number.failed ? NO_MEMORY : matched ? MATCHED : MISMATCH;
}
