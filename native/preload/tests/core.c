/* tests/core.c: tests config.c and text.c, which make no system calls, as an ordinary program under sanitizers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../config.h"

static int wrong;
static void check(int holds, const char *what) {
    if (!holds) printf("wrong: %s\n", what), wrong = 1;
}

static void patterns(void) {
    static const struct {
        const char *glob, *text;
        int matches;
    } cases[] = {
        {"", "", 1}, {"", "a", 0}, {"*", "", 1}, {"*", "/a/b", 1}, {"*.log", "x.log", 1}, {"*.log", "x.logs", 0},
        {"a*b*c", "aXbYbZc", 1}, {"a*b*c", "aXbYbZ", 0}, {"?", "", 0}, {"?x", "ax", 1}, {"[a-c]", "b", 1},
        {"[a-c]", "d", 0}, {"[!a-c]", "d", 1}, {"[]]", "]", 1}, {"[a", "[a", 1}, {"[a-", "[a-", 1}, {"\\*", "*", 1},
        {"\\*", "x", 0}, {"\\", "\\", 1}, {"*a", "aaaa", 1}, {"**", "x", 1}, {"[!", "[!", 1}, {"[^x]y", "zy", 1},
        {"[a-\xff]", "b", 1}, {"[a-\xff]", "\xe9", 1}, {"[\x80-\xff]", "b", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(glob_matches(span_of(cases[i].glob), cases[i].text) == cases[i].matches, cases[i].glob);
}

static void numbers(void) {
    check(span_number(span_of("0")) == 0 && span_number(span_of("18")) == 18, "numbers");
    check(span_number(span_of("")) == -1 && span_number(span_of("1x")) == -1, "not one");
    check(span_number(span_of("-1")) == -1, "signs");
    check(span_number(span_of("9223372036854775807")) == INT64_MAX, "the largest signed number");
    check(span_number(span_of("9223372036854775808")) == -1, "too large");
    uint64_t number = 1;
    check(span_unsigned(span_of("18446744073709551615"), &number) && number == UINT64_MAX, "the largest unsigned number");
    check(!span_unsigned(span_of("18446744073709551616"), &number), "one too many");
    check(!span_unsigned(span_of("99999999999999999999"), &number), "the largest of 20 digits");
    check(!span_unsigned(span_of("184467440737095516150"), &number) && !span_unsigned(span_of(""), &number), "no number");
    char text[24];
    *text_put_number(text, UINT64_MAX) = 0;
    check(strcmp(text, "18446744073709551615") == 0, "the largest number");
    *text_put_number(text, 0) = 0;
    check(strcmp(text, "0") == 0, "zero");
    check(span_same(span_of("ab"), span_of("ab")) && !span_same(span_of("ab"), span_of("abc")), "same spans");
}

/* Copies between heap memory of the exact size, so that the sanitizer finds a byte too many. */
static void copies(void) {
    for (size_t n = 0; n < 40; n++) {
        char *from = malloc(n + 1), *to = malloc(n + 1);
        for (size_t i = 0; i < n; i++) from[i] = (char)(i + 1);
        to[n] = 'e';
        check(text_put(to, from, n) == to + n && !memcmp(to, from, n) && to[n] == 'e', "copies");
        free(from);
        free(to);
    }
}

/* Parses a heap copy of the exact size, so that the sanitizer finds a read past its end. */
static int parse(struct config *into, const char *text) {
    char *copy = strdup(text);
    memset(into, 0, sizeof *into);
    int good = config_parse(into, copy);
    free(copy);
    return good;
}

static void lines(void) {
    static struct config c;
    check(parse(&c, "lib=/l.so\nstdout=line\nstdin=full:10\nstderr=none\nfile=a=b*=full\nforce=1\norder=1\nlater=x\n"),
          "good");
    check(c.standard[0].bytes == 10 && c.standard[1].kind == MODE_LINE && c.standard[2].kind == MODE_NONE, "modes");
    check(c.files_count == 1 && span_is(c.files[0].glob, "a=b*") && c.files[0].mode.bytes == DEFAULT_FULL_BYTES, "files");
    check(c.force && c.order && !c.exec_flush && c.coalesce == COALESCE_OFF, "switches");
    check(!parse(&c, "") && !parse(&c, "\n\n=\n") && !parse(&c, "lib=relative"), "no library");
    check(parse(&c, "lib=/l\nstdout=full:0\nstdin=lines\nstderr=full:x\nfile=none\nfile==none\nstdin-private=1\n"
                    "coalesce=some"),
          "bad values");
    for (int i = 0; i < 3; i++) check(c.standard[i].kind == MODE_KEEP, "bad modes");
    check(c.files_count == 1 && !c.private_stdin && c.coalesce == COALESCE_OFF, "bad rest");
    check(parse(&c, "lib=/l\nstdin-private=66306:123\nfirst=7\ncoalesce=files\narena=/proc/1/fd/3"), "numbers");
    check(c.private_stdin && c.private_dev == 66306 && c.private_ino == 123 && c.first_pid == 7, "private");
    check(c.coalesce == COALESCE_FILES && !strcmp(c.arena, "/proc/1/fd/3"), "arena");
    check(parse(&c, "lib=/l\nstdin-private=18446744073709551615:10000000000000000000"), "long numbers");
    check(c.private_stdin && c.private_dev == UINT64_MAX && c.private_ino == UINT64_C(10000000000000000000), "long");
    check(parse(&c, "lib=/l\nstdin-private=1:18446744073709551616") && !c.private_stdin, "an inode that is too large");
}

static void garbage(void) { /* no input may crash the parser */
    static const char pieces[] = "lib=/file=stdout=full:line\n=*[]\\:0123456789";
    static struct config c;
    char text[CONFIG_BYTES + 64];
    srand(1);
    for (int round = 0; round < 20000; round++) {
        size_t n = (size_t)rand() % (round % 100 ? 200 : sizeof text);
        for (size_t i = 0; i < n; i++) text[i] = pieces[(size_t)rand() % (sizeof pieces - 1)];
        text[n ? n - 1 : 0] = 0;
        parse(&c, text);
        glob_matches(span_of(text), pieces);
    }
}

int main(void) {
    patterns();
    numbers();
    copies();
    lines();
    garbage();
    puts(wrong ? "failed" : "passed");
    return wrong;
}
