/* tr.c: translates bytes of standard input, as tr(1): `tr a w`, `tr a-z A-Z`, `tr '\n' ' '`. */
#include "example.h"

#define USAGE "SET1 SET2\n" \
    "  SET: bytes, ranges as a-z, and \\\\ \\a \\b \\f \\n \\r \\t \\v \\NNN (octal)\n" \
    "  a shorter SET2 is extended with its last byte"
#define STDIN_NAME "standard input"

enum {
    BLOCK = 64,      /* a loop of fixed length, which compilers vectorize */
    STRIP = 4096,    /* stays in the L1 cache while all runs are applied */
    MAX_RUNS = 8,    /* above this number the table is faster */
    MAX_STEP = 1 << 16, /* bytes translated from one buffer to the other at a time */
};

/* A range of bytes, first to first + span, that is moved by `shift`. Most maps consist of a few runs. */
struct run {
    uint8_t first, span, shift;
};

struct map {
    uint8_t to[256];
    struct run runs[MAX_RUNS];
    int run_count; /* above MAX_RUNS: the table is used */
};

/* ---- sets ---- */

static int parse_octal(const char **text)
{
    int value = 0;
    for (int digits = 0; digits < 3 && **text >= '0' && **text <= '7' && value < 32; digits++)
        value = value * 8 + *(*text)++ - '0';
    return value;
}

static uint8_t parse_byte(const char **text)
{
    static const char names[] = "abfnrtv", bytes[] = "\a\b\f\n\r\t\v";
    if (**text != '\\' || !(*text)[1])
        return (uint8_t)*(*text)++;
    ++*text;
    if (**text >= '0' && **text <= '7')
        return (uint8_t)parse_octal(text);
    const char *name = strchr(names, *(*text)++);
    return (uint8_t)(name ? bytes[name - names] : (*text)[-1]);
}

/* Returns whether the set uses syntax of tr(1) that this program does not support. Rejecting it is better
 * than taking it literally. */
static int has_unsupported_syntax(const char *text)
{
    for (const char *at = text; (at = strchr(at, '[')); at++)
        if (at[1] == ':' || at[1] == '=' || (at[1] && at[2] == '*'))
            return 1;
    return 0;
}

static size_t parse_set(const char *text, uint8_t *set)
{
    size_t length = 0;
    const char *whole = text;
    if (has_unsupported_syntax(text))
        usage(USAGE, text, "classes and repetitions are not supported");
    while (*text) {
        unsigned first = parse_byte(&text), last = first;
        if (*text == '-' && text[1]) {
            ++text;
            last = parse_byte(&text);
        }
        if (last < first)
            usage(USAGE, whole, "a range ends before it starts");
        for (; first <= last; first++)
            set[length++] = (uint8_t)first;
    }
    return length;
}

static uint8_t *new_set(const char *text, size_t *length)
{
    uint8_t *set = malloc(256 * (strlen(text) + 1));
    if (!set)
        fail(text, ENOMEM);
    *length = parse_set(text, set);
    return set;
}

/* ---- the map ---- */

static void find_runs(struct map *map)
{
    for (int c = 0; c < 256 && map->run_count <= MAX_RUNS; c++) {
        uint8_t shift = (uint8_t)(map->to[c] - c);
        if (!shift)
            continue;
        int first = c;
        while (c < 255 && (uint8_t)(map->to[c + 1] - (c + 1)) == shift)
            c++;
        if (map->run_count < MAX_RUNS)
            map->runs[map->run_count] = (struct run){ (uint8_t)first, (uint8_t)(c - first), shift };
        map->run_count++;
    }
}

static struct map make_map(const char *text1, const char *text2)
{
    size_t length1, length2;
    struct map map = { .run_count = 0 };
    uint8_t *set1 = new_set(text1, &length1), *set2 = new_set(text2, &length2);
    if (length2 == 0 && length1 > 0)
        usage(USAGE, text2, "SET2 is empty");
    for (int c = 0; c < 256; c++)
        map.to[c] = (uint8_t)c;
    for (size_t i = 0; i < length1; i++)
        map.to[set1[i]] = set2[i < length2 ? i : length2 - 1];
    free(set1);
    free(set2);
    find_runs(&map);
    return map;
}

/* ---- the bytes ---- */

/* Adds run.shift to the bytes in the run. Branch-free, so that compilers vectorize it. */
static void apply(struct run run, uint8_t *restrict to, const uint8_t *restrict from, size_t blocks)
{
    for (; blocks > 0; blocks--, to += BLOCK, from += BLOCK)
        for (int i = 0; i < BLOCK; i++) {
            uint8_t within = (uint8_t)(from[i] - run.first) <= run.span ? 0xff : 0;
            to[i] = (uint8_t)(to[i] + (within & run.shift));
        }
}

static void translate_by_table(const uint8_t *table, uint8_t *restrict to, const uint8_t *restrict from,
                               size_t bytes)
{
    for (; bytes >= 8; bytes -= 8, to += 8, from += 8)
        for (int i = 0; i < 8; i++)
            to[i] = table[from[i]];
    for (; bytes > 0; bytes--)
        *to++ = table[*from++];
}

static void translate_by_runs(const struct map *map, uint8_t *restrict to, const uint8_t *restrict from,
                              size_t bytes)
{
    while (bytes >= BLOCK) {
        size_t strip = bytes < STRIP ? bytes - bytes % BLOCK : STRIP;
        memcpy(to, from, strip);
        for (int i = 0; i < map->run_count; i++)
            apply(map->runs[i], to, from, strip / BLOCK);
        to += strip, from += strip, bytes -= strip;
    }
    translate_by_table(map->to, to, from, bytes);
}

static void translate(const struct map *map, char *to, const char *from, size_t bytes)
{
    if (map->run_count > MAX_RUNS)
        translate_by_table(map->to, (uint8_t *)to, (const uint8_t *)from, bytes);
    else
        translate_by_runs(map, (uint8_t *)to, (const uint8_t *)from, bytes);
}

/* Translates directly from the input's buffer into the output's. */
static void run(const struct map *map, weir_stream *in, weir_stream *out)
{
    char *from, *to;
    int64_t here;
    while ((here = check(weir_peek(in, &from, 1), STDIN_NAME)) > 0) {
        size_t bytes = here < MAX_STEP ? (size_t)here : MAX_STEP;
        check(weir_reserve(out, &to, bytes), STDOUT_NAME);
        translate(map, to, from, bytes);
        check(weir_commit(out, bytes), STDOUT_NAME);
        check(weir_skip(in, bytes), STDIN_NAME);
    }
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "--") == 0)
        argc--, argv++;
    if (argc != 3)
        usage(USAGE, NULL, NULL);
    struct map map = make_map(argv[1], argv[2]);
    weir_stream *in = weir_stdin();
    if (!in)
        fail(STDIN_NAME, ENOMEM);
    run(&map, in, open_stdout());
    close_stdout();
    return 0;
}
