/* text.h: string functions, because the library links no C library. */
#ifndef WEIR_TEXT_H
#define WEIR_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* A part of the configuration, without a final NUL. */
struct span {
    const char *at;
    size_t n;
};

static inline size_t text_length(const char *text) {
    size_t n = 0;
    while (text[n]) n++;
    return n;
}

static inline int text_begins(const char *text, const char *with) {
    while (*with && *text == *with) text++, with++;
    return !*with;
}

static inline int span_is(struct span span, const char *text) {
    size_t i = 0;
    while (i < span.n && text[i] && span.at[i] == text[i]) i++;
    return i == span.n && !text[i];
}

static inline struct span span_of(const char *text) { return (struct span){text, text_length(text)}; }

struct text_word {
    uint64_t value;
} __attribute__((packed, may_alias));

/* Copies bytes, in words as far as possible, and returns the end of the copy. The ranges may overlap if `to` is below `from`. */
static inline char *text_put(char *to, const char *from, size_t n) {
    for (; n >= 8; n -= 8, to += 8, from += 8) *(struct text_word *)to = *(const struct text_word *)from;
    for (; n; n--) *to++ = *from++;
    return to;
}

static inline int span_same(struct span a, struct span b) {
    size_t i = 0;
    while (i < a.n && i < b.n && a.at[i] == b.at[i]) i++;
    return i == a.n && i == b.n;
}

/* Appends a decimal number, and returns its end. */
char *text_put_number(char *to, uint64_t number);
/* Parses a decimal number that fills the whole span. Returns false if it does not, or if the number is above UINT64_MAX. */
int span_unsigned(struct span span, uint64_t *into);
/* As span_unsigned. Returns the number, or -1 if it is above INT64_MAX or none. */
int64_t span_number(struct span span);
/* Matches a shell pattern: * ? [a-z] [!a], and \ before a character. Unlike in a shell, * matches slashes. */
int glob_matches(struct span pattern, const char *text);
#endif
