/* checked_stream_read.c: the steps that read; their bytes are compared with the file at the program's position. */
#include <stdio.h>

#include "checked_stream.h"

enum { READ_MAX = 12000 };

/* Returns how many bytes a read of `most` bytes should find. */
static size_t bytes_left(const struct checked_stream *t, size_t most)
{
    size_t bytes = 0;
    while (bytes < most && checked_next_byte(t, bytes) >= 0)
        bytes++;
    return bytes;
}

static void check_same_bytes(struct checked_stream *t, enum op op, const char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if ((unsigned char)bytes[i] != checked_next_byte(t, i)) {
            checked_fail(t, "%s: byte %zu of %zu is %02x, not %02x", op_name(op), i, count,
                          (unsigned char)bytes[i], (unsigned)checked_next_byte(t, i));
            return;
        }
}

static void consume(struct checked_stream *t, size_t bytes)
{
    size_t pushed = bytes < t->pushed_count ? bytes : t->pushed_count;
    t->pushed_count -= pushed;
    t->position += (int64_t)(bytes - pushed);
}

/* Checks a read of `bytes` bytes that returned `got`, with the data at `from` (NULL: skipped). Returns `got`. */
static int64_t check_read(struct checked_stream *t, enum op op, const char *from, int64_t got, size_t bytes)
{
    if (got < 0)
        return got;
    size_t available = bytes_left(t, bytes);
    bool enough = op == OP_READ_SOME ? (got > 0 || available == 0) : (size_t)got == available;
    if ((size_t)got > available || (!enough && !checked_may_fail(t)))
        checked_fail(t, "%s returned %lld of %zu", op_name(op), (long long)got, available);
    else if (from)
        check_same_bytes(t, op, from, (size_t)got);
    consume(t, (size_t)got);
    return got;
}

static int64_t getc_step(struct checked_stream *t)
{
    int c = weir_getc(t->s), expected = checked_next_byte(t, 0);
    if (c == WEIR_EOF) {
        if (expected >= 0)
            checked_fail(t, "getc returned WEIR_EOF, not %02x", (unsigned)expected);
        else if (weir_eof(t->s) != 1)
            checked_fail(t, "getc returned WEIR_EOF, but weir_eof is not 1");
        return 0;
    }
    if (c < 0)
        return c;
    if (c != expected)
        checked_fail(t, "getc: %02x, not %d", (unsigned)c, expected);
    consume(t, 1);
    return c;
}

static int64_t getrec_step(struct checked_stream *t)
{
    char *record = NULL;
    ssize_t got = weir_getrec(t->s, &record);
    size_t length = 0;
    int c;
    bool ended = false;
    while (!ended && (c = checked_next_byte(t, length)) >= 0) {
        length++;
        ended = c == t->config->separator;
    }
    size_t most = t->options.max_record_bytes;
    if (got == -EMSGSIZE && most && length > most)
        return 0;
    if (got < 0)
        return got;
    if ((size_t)got != length || (most && length > most))
        checked_fail(t, "getrec returned %zd, not %zu", got, length);
    else
        check_same_bytes(t, OP_GETREC, record, length);
    consume(t, (size_t)got);
    return got;
}

static int64_t peek_step(struct checked_stream *t, size_t bytes)
{
    char *from = NULL;
    ssize_t got = weir_peek(t->s, &from, bytes);
    if (got < 0)
        return got;
    if ((size_t)got < bytes_left(t, bytes) && !checked_may_fail(t))
        checked_fail(t, "peek returned %zd of %zu", got, bytes_left(t, bytes));
    if (bytes_left(t, (size_t)got) < (size_t)got)
        checked_fail(t, "peek returned %zd, but only %zu are left", got, bytes_left(t, (size_t)got));
    else
        check_same_bytes(t, OP_PEEK, from, (size_t)got);
    return got;
}

/* Pushes a byte back. Sometimes it equals the byte just read, which needs no extra memory. */
static int64_t ungetc_step(struct checked_stream *t, uint64_t argument)
{
    int c = (int)(argument % 251);
    if (t->pushed_count == PUSHED_MAX)
        return 0;
    int result = weir_ungetc(t->s, c);
    if (result < 0)
        return result;
    if (result != c)
        checked_fail(t, "ungetc returned %d for %d", result, c);
    t->pushed[t->pushed_count++] = (unsigned char)c;
    return 0;
}

int64_t checked_read_step(struct checked_stream *t, enum op op, uint64_t argument)
{
    static char to[READ_MAX];
    size_t bytes = argument % 64 < 60 ? argument % 50 : argument / 64 % READ_MAX;
    int64_t result;
    switch (op) {
    case OP_GETC: result = getc_step(t); break;
    case OP_READ: result = check_read(t, op, to, weir_read(t->s, to, bytes), bytes); break;
    case OP_READ_SOME: result = check_read(t, op, to, weir_read_some(t->s, to, bytes), bytes); break;
    case OP_SKIP: result = check_read(t, op, NULL, weir_skip(t->s, bytes), bytes); break;
    case OP_GETREC: result = getrec_step(t); break;
    case OP_PEEK: result = peek_step(t, bytes); break;
    default: result = ungetc_step(t, argument); break;
    }
    checked_error_allowed(t, result, op);
    return result;
}
