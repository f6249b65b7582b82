/* subject_read.c: the steps that read, compared with what the file has at the program's position. */
#include <stdio.h>

#include "subject.h"

enum { MOST = 12000 };

static size_t coming_bytes(const struct subject *t, size_t most)
{
    size_t bytes = 0;
    while (bytes < most && subject_coming(t, bytes) >= 0)
        bytes++;
    return bytes;
}

static void same(struct subject *t, enum op op, const char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if ((unsigned char)bytes[i] != subject_coming(t, i)) {
            subject_wrong(t, "%s: byte %zu of %zu is %02x, not %02x", op_name(op), i, count,
                          (unsigned char)bytes[i], (unsigned)subject_coming(t, i));
            return;
        }
}

static void take(struct subject *t, size_t bytes)
{
    size_t pushed = bytes < t->pushed_count ? bytes : t->pushed_count;
    t->pushed_count -= pushed;
    t->at += (int64_t)(bytes - pushed);
}

/* `bytes` were asked for and `got` came, from `from` (NULL: skipped). */
static int64_t arrived(struct subject *t, enum op op, const char *from, int64_t got, size_t bytes)
{
    if (got < 0)
        return got;
    size_t coming = coming_bytes(t, bytes);
    bool enough = op == OP_READ_SOME ? (got > 0 || coming == 0) : (size_t)got == coming;
    if ((size_t)got > coming || (!enough && !subject_may_fail(t)))
        subject_wrong(t, "%s gave %lld of %zu", op_name(op), (long long)got, coming);
    else if (from)
        same(t, op, from, (size_t)got);
    take(t, (size_t)got);
    return got;
}

static int64_t getc_step(struct subject *t)
{
    int c = weir_getc(t->s), expected = subject_coming(t, 0);
    if (c == WEIR_EOF) {
        if (expected >= 0)
            subject_wrong(t, "getc: the end, not %02x", (unsigned)expected);
        else if (weir_eof(t->s) != 1)
            subject_wrong(t, "getc met the end, weir_eof says no");
        return 0;
    }
    if (c < 0)
        return c;
    if (c != expected)
        subject_wrong(t, "getc: %02x, not %d", (unsigned)c, expected);
    take(t, 1);
    return c;
}

static int64_t getrec_step(struct subject *t)
{
    char *record = NULL;
    ssize_t got = weir_getrec(t->s, &record);
    size_t length = 0;
    int c;
    bool ended = false;
    while (!ended && (c = subject_coming(t, length)) >= 0) {
        length++;
        ended = c == t->config->separator;
    }
    size_t most = t->options.max_record_bytes;
    if (got == -EMSGSIZE && most && length > most)
        return 0;
    if (got < 0)
        return got;
    if ((size_t)got != length || (most && length > most))
        subject_wrong(t, "getrec gave %zd, not %zu", got, length);
    else
        same(t, OP_GETREC, record, length);
    take(t, (size_t)got);
    return got;
}

static int64_t peek_step(struct subject *t, size_t bytes)
{
    char *from = NULL;
    ssize_t got = weir_peek(t->s, &from, bytes);
    if (got < 0)
        return got;
    if ((size_t)got < coming_bytes(t, bytes) && !subject_may_fail(t))
        subject_wrong(t, "peek gave %zd of %zu", got, coming_bytes(t, bytes));
    if (coming_bytes(t, (size_t)got) < (size_t)got)
        subject_wrong(t, "peek gave %zd, there are %zu", got, coming_bytes(t, (size_t)got));
    else
        same(t, OP_PEEK, from, (size_t)got);
    return got;
}

/* Now and then the very byte that was read, which needs no room. */
static int64_t ungetc_step(struct subject *t, uint64_t argument)
{
    int c = (int)(argument % 251);
    if (t->pushed_count == PUSHED_MAX)
        return 0;
    int result = weir_ungetc(t->s, c);
    if (result < 0)
        return result;
    if (result != c)
        subject_wrong(t, "ungetc returned %d for %d", result, c);
    t->pushed[t->pushed_count++] = (unsigned char)c;
    return 0;
}

int64_t subject_read_step(struct subject *t, enum op op, uint64_t argument)
{
    static char to[MOST];
    size_t bytes = argument % 64 < 60 ? argument % 50 : argument / 64 % MOST;
    int64_t result;
    switch (op) {
    case OP_GETC: result = getc_step(t); break;
    case OP_READ: result = arrived(t, op, to, weir_read(t->s, to, bytes), bytes); break;
    case OP_READ_SOME: result = arrived(t, op, to, weir_read_some(t->s, to, bytes), bytes); break;
    case OP_SKIP: result = arrived(t, op, NULL, weir_skip(t->s, bytes), bytes); break;
    case OP_GETREC: result = getrec_step(t); break;
    case OP_PEEK: result = peek_step(t, bytes); break;
    default: result = ungetc_step(t, argument); break;
    }
    subject_error_is_right(t, result, op);
    return result;
}
