/* text.c: parses numbers and matches patterns. It makes no system calls: tests/core.c runs it under sanitizers. */
#include "text.h"

char *text_put_number(char *to, uint64_t number) {
    char digits[20];
    int n = 0;
    do digits[n++] = (char)('0' + number % 10);
    while (number /= 10);
    while (n) *to++ = digits[--n];
    return to;
}

int span_unsigned(struct span span, uint64_t *into) {
    uint64_t value = 0;
    for (size_t i = 0; i < span.n; i++) {
        if (span.at[i] < '0' || span.at[i] > '9') return 0;
        uint64_t digit = (uint64_t)(span.at[i] - '0');
        if (__builtin_mul_overflow(value, UINT64_C(10), &value) || __builtin_add_overflow(value, digit, &value)) return 0;
    }
    *into = value;
    return span.n > 0;
}

int64_t span_number(struct span span) {
    uint64_t value;
    return span_unsigned(span, &value) && value <= INT64_MAX ? (int64_t)value : -1;
}

/* Compares bytes: char is signed on x86-64 and unsigned on aarch64. */
static int is_between(char low, char c, char high) {
    return (unsigned char) low <= (unsigned char) c && (unsigned char) c <= (unsigned char) high;
}

/* Returns the index of the bracket that ends the [set] at `at`, or 0 if there is none. *hit is true if `c` is in
   the set. */
static size_t set_end(struct span set, size_t at, char c, int *hit) {
    size_t i = at + 1;
    int not = i < set.n && (set.at[i] == '!' || set.at[i] == '^');
    *hit = 0;
    i += (size_t) not;
    for (size_t first = i; i < set.n; i++) {
        if (set.at[i] == ']' && i > first) {
            *hit ^= not;
            return i;
        }
        if (i + 2 < set.n && set.at[i + 1] == '-' && set.at[i + 2] != ']') {
            *hit |= is_between(set.at[i], c, set.at[i + 2]);
            i += 2;
        } else {
            *hit |= set.at[i] == c;
        }
    }
    return 0;
}

/* Returns how many characters of the pattern at `p` match the character `c`; 0 if they do not. */
static size_t match_one(struct span pattern, size_t p, char c) {
    int hit;
    size_t end;
    if (pattern.at[p] == '?') return 1;
    if (pattern.at[p] == '\\' && p + 1 < pattern.n) return pattern.at[p + 1] == c ? 2 : 0;
    if (pattern.at[p] == '[' && (end = set_end(pattern, p, c, &hit))) return hit ? end + 1 - p : 0;
    return pattern.at[p] == c;
}

int glob_matches(struct span pattern, const char *text) {
    size_t p = 0, step, star = SIZE_MAX;
    const char *again = text;
    while (*text) {
        if (p < pattern.n && pattern.at[p] == '*') {
            star = p++;
            again = text;
        } else if (p < pattern.n && (step = match_one(pattern, p, *text))) {
            p += step;
            text++;
        } else if (star != SIZE_MAX) {
            p = star + 1;
            text = ++again;
        } else {
            return 0;
        }
    }
    while (p < pattern.n && pattern.at[p] == '*') p++;
    return p == pattern.n;
}
