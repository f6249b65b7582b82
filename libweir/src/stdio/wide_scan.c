/* wide_scan.c: wscanf. The C library's vfwscanf cannot be used: it reads no FILE of fopencookie(3), and vswscanf does not say
 * how many characters it has used. The input that a conversion accepts is the same as in glibc. */
#include "wide_scan.h"

#include <limits.h>
#include <wctype.h>

/* ---- characters ---- */

wint_t weir__wide_get(struct scan *scan)
{
    char bytes[MB_LEN_MAX];
    size_t count;
    wint_t c = weir__stdio_get_wide(scan->from, bytes, &count);
    scan->used += c != WEOF;
    return c;
}

void weir__wide_unget(struct scan *scan, wint_t c)
{
    if (c == WEOF)
        return;
    weir__stdio_unget_wide(scan->from, c);
    scan->used--;
}

/* Skips white space. Returns the character behind it, which counts as read; the caller gives it back if it is not used. */
static wint_t skip_space(struct scan *scan)
{
    wint_t c;
    do
        c = weir__wide_get(scan);
    while (c != WEOF && iswspace(c));
    return c;
}

/* ---- the result's memory ---- */

bool weir__wide_append(struct target *to, const void *from, size_t bytes)
{
    if (to->discards)
        return true;
    if (to->grows && to->used + bytes > to->room) {
        size_t room = 2 * to->room + bytes + 32;
        char *larger = realloc(to->bytes, room);
        if (!larger)
            return false;
        to->bytes = larger;
        to->room = room;
    }
    memcpy(to->bytes + to->used, from, bytes);
    to->used += bytes;
    return true;
}

void *weir__wide_argument(struct scan *scan, const struct directive *directive)
{
    void *result = NULL;
    va_list again;
    if (directive->position == 0)
        return va_arg(scan->next, void *);
    va_copy(again, scan->first);
    for (int i = 0; i < directive->position; i++)
        result = va_arg(again, void *);
    va_end(again);
    return result;
}

/* ---- text ---- */

static bool in_set(const struct directive *directive, wint_t c)
{
    bool found = false;
    for (const wchar_t *at = directive->set; at < directive->set_end && !found; at++)
        if (at + 2 < directive->set_end && at[1] == L'-') {
            found = c >= (wint_t)at[0] && c <= (wint_t)at[2];
            at += 2;
        } else {
            found = c == (wint_t)*at;
        }
    return found != directive->set_excludes;
}

static bool accepts(const struct directive *directive, wint_t c)
{
    if (c == WEOF)
        return false;
    return directive->conversion == L'c' || (directive->conversion == L's' ? !iswspace(c) : in_set(directive, c));
}

static bool append_character(struct target *to, bool is_wide, wint_t c)
{
    char bytes[MB_LEN_MAX];
    mbstate_t shift;
    wchar_t wide = (wchar_t)c;
    memset(&shift, 0, sizeof shift);
    size_t count = is_wide ? sizeof wide : wcrtomb(bytes, wide, &shift);
    return count != (size_t)-1 && weir__wide_append(to, is_wide ? (const void *)&wide : bytes, count);
}

static enum outcome scan_text(struct scan *scan, const struct directive *directive)
{
    bool is_wide = directive->length == 'l', one = directive->conversion == L'c', failed = false;
    int most = directive->width ? directive->width : one ? 1 : INT_MAX, taken = 0;
    struct target to = {.grows = directive->allocates, .discards = directive->suppressed};
    void *given = directive->suppressed ? NULL : weir__wide_argument(scan, directive);
    if (!directive->allocates)
        to.bytes = given;
    wint_t c = WEOF;
    while (taken < most && accepts(directive, c = weir__wide_get(scan)) && !failed) {
        failed = !append_character(&to, is_wide, c);
        c = WEOF;
        taken++;
    }
    if (taken < most)
        weir__wide_unget(scan, c);
    if (!one && (taken > 0 || !to.grows))
        failed |= taken > 0 && !append_character(&to, is_wide, L'\0');
    if (taken == 0 || failed) {
        if (directive->allocates)
            free(to.bytes);
        return failed ? NO_MEMORY : c == WEOF ? NO_INPUT : MISMATCH;
    }
    if (!directive->suppressed) {
        if (directive->allocates)
            *(char **)given = to.bytes;
        scan->assigned++;
    }
    return MATCHED;
}

/* ---- the format ---- */

static const wchar_t *parse_number(const wchar_t *at, int *value)
{
    for (*value = 0; *at >= L'0' && *at <= L'9'; at++)
        *value = *value > (INT_MAX - 9) / 10 ? INT_MAX : *value * 10 + (int)(*at - L'0');
    return at;
}

static const wchar_t *parse_length(const wchar_t *at, char *length)
{
    wchar_t c = *at;
    *length = 0;
    if (c == 0 || !wcschr(L"hlLqjzt", c))
        return at;
    bool twice = (c == L'h' || c == L'l') && at[1] == c;
    *length = c == L'L' || c == L'q' || (c == L'l' && twice) ? 'Q' : c == L'h' && twice ? 'H' : (char)c;
    return at + 1 + twice;
}

static const wchar_t *parse_set(const wchar_t *at, struct directive *directive)
{
    directive->set_excludes = *at == L'^';
    at += directive->set_excludes;
    directive->set = at;
    at += *at == L']';
    while (*at && *at != L']')
        at++;
    directive->set_end = at;
    return *at ? at + 1 : at;
}

/* Parses a directive; `at` is behind its percent sign. Returns the address behind the directive. */
static const wchar_t *parse_directive(const wchar_t *at, struct directive *directive)
{
    int number;
    memset(directive, 0, sizeof *directive);
    const wchar_t *behind = parse_number(at, &number);
    if (behind > at && *behind == L'$') {
        directive->position = number;
        at = behind + 1;
    }
    for (; *at == L'*' || *at == L'\'' || *at == L'I'; at++)
        directive->suppressed |= *at == L'*';
    at = parse_number(at, &directive->width);
    directive->allocates = *at == L'm';
    at = parse_length(at + directive->allocates, &directive->length);
    directive->conversion = *at;
    if (*at == L'C' || *at == L'S') {
        directive->length = 'l';
        directive->conversion = *at == L'C' ? L'c' : L's';
    }
    if (*at == L'[')
        return parse_set(at + 1, directive);
    return *at ? at + 1 : at;
}

static enum outcome match_literal(struct scan *scan, wchar_t expected)
{
    wint_t c = weir__wide_get(scan);
    if (c == (wint_t)expected)
        return MATCHED;
    weir__wide_unget(scan, c);
    return c == WEOF ? NO_INPUT : MISMATCH;
}

static enum outcome convert(struct scan *scan, const struct directive *directive)
{
    wchar_t conversion = directive->conversion;
    if (conversion == L'n') {
        if (!directive->suppressed)
            weir__wide_store_integer(weir__wide_argument(scan, directive), directive->length, (unsigned long long)scan->used);
        return MATCHED;
    }
    if (conversion != L'c' && conversion != L'[') {
        wint_t c = skip_space(scan);
        weir__wide_unget(scan, c);
        if (conversion == 0 || !wcschr(L"diouxXpaAeEfFgGs%", conversion))
            return MISMATCH;
        if (c == WEOF)
            return NO_INPUT;
    }
    if (conversion == L'%')
        return match_literal(scan, L'%');
    return wcschr(L"cs[", conversion) ? scan_text(scan, directive) : weir__wide_number(scan, directive);
}

static int scan_held(struct scan *scan, const wchar_t *at)
{
    enum outcome outcome = MATCHED;
    while (*at && outcome == MATCHED) {
        struct directive directive;
        if (iswspace((wint_t)*at)) {
            weir__wide_unget(scan, skip_space(scan));
            at++;
        } else if (*at != L'%') {
            outcome = match_literal(scan, *at++);
        } else {
            at = parse_directive(at + 1, &directive);
            outcome = convert(scan, &directive);
        }
    }
    if (outcome == NO_MEMORY)
        weir__stdio_fail(scan->from, -ENOMEM);
    return outcome == MATCHED || outcome == MISMATCH || scan->assigned ? scan->assigned : EOF;
}

int weir_stdio_vfwscanf(weir_stream *s, const wchar_t *format, va_list arguments)
{
    struct scan scan = {.from = s};
    int result = EOF;
    weir__enter(s);
    va_copy(scan.next, arguments);
    va_copy(scan.first, arguments);
    if (weir__config(s)->can_read) {
        weir__stdio_use_wide(s);
        result = scan_held(&scan, format);
    } else {
        weir__stdio_fail(s, -EBADF);
    }
    va_end(scan.first);
    va_end(scan.next);
    weir__leave(s);
    return result;
}

int weir_stdio_vwscanf(const wchar_t *format, va_list arguments)
{
    return weir_stdio_vfwscanf(weir_stdio_known(0), format, arguments);
}

int weir_stdio_fwscanf(weir_stream *s, const wchar_t *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int result = weir_stdio_vfwscanf(s, format, arguments);
    va_end(arguments);
    return result;
}

int weir_stdio_wscanf(const wchar_t *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int result = weir_stdio_vfwscanf(weir_stdio_known(0), format, arguments);
    va_end(arguments);
    return result;
}
