/* checked_stream_write.c: the steps that write. A byte's value depends on its number, so that the comparison
 * detects lost, doubled and reordered bytes. */
#include <stdio.h>

#include "checked_stream.h"

enum { TEXT_MAX = 12000 };

static unsigned char byte_of(uint64_t number)
{
    if (number % 11 == 7)
        return '\n';
    return (unsigned char)((number % 3 ? 'a' : 'A') + number / 3 % 26);
}

static size_t make_text(const struct checked_stream *t, unsigned char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        text[i] = byte_of(t->generated + i);
    return bytes;
}

/* Returns mostly short lengths, sometimes one that exceeds every buffer of these tests. */
static size_t length_of(uint64_t argument)
{
    static const size_t lengths[] = {0, 1, 2, 3, 5, 7, 8, 13, 16, 17, 30, 64, 100, 4095, 4097, 9000};
    return argument % 256 < 240 ? argument % 40 : lengths[argument % 16];
}

/* Adds the accepted bytes to the model. Fewer than `most` are correct only after a fault. Returns `result`. */
static int64_t check_accepted(struct checked_stream *t, const void *bytes, int64_t result, size_t most)
{
    if (result > 0 && (size_t)result > most) {
        checked_fail(t, "%lld accepted of %zu", (long long)result, most);
        return result;
    }
    if (result > 0)
        checked_accept(t, bytes, (size_t)result);
    if (result >= 0 && (size_t)result < most && !checked_may_fail(t) && !t->sync_failed)
        checked_fail(t, "%lld accepted of %zu", (long long)result, most);
    t->generated += most;
    return result;
}

/* Checks a call that accepts all bytes or none. Returns `result`. */
static int64_t check_all_or_none(struct checked_stream *t, const void *bytes, int64_t result, size_t all)
{
    if (result >= 0 && (size_t)result != all)
        checked_fail(t, "%lld returned for %zu", (long long)result, all);
    return check_accepted(t, bytes, result, all);
}

static int64_t writev_step(struct checked_stream *t, unsigned char *text, uint64_t argument)
{
    struct iovec parts[40];
    size_t bytes = 0;
    int count = (int)(argument % 8 < 7 ? argument % 4 : argument / 8 % 40);
    for (int i = 0; i < count; i++) {
        size_t length = argument >> i & 1 ? length_of(argument >> 8) % 1000 : (argument >> i) % 5;
        parts[i] = (struct iovec){text + bytes, length};
        bytes += length;
    }
    make_text(t, text, bytes);
    return check_accepted(t, text, weir_writev(t->s, parts, count), bytes);
}

static int64_t put_number_step(struct checked_stream *t, uint64_t argument)
{
    char text[400];
    int64_t result;
    if (argument % 3 == 0) {
        snprintf(text, sizeof text, "%llu", (unsigned long long)argument);
        result = weir_put_u64(t->s, argument);
    } else if (argument % 3 == 1) {
        snprintf(text, sizeof text, "%lld", -(long long)argument);
        result = weir_put_i64(t->s, -(int64_t)argument);
    } else {
        snprintf(text, sizeof text, "%.3f", (double)argument / 8);
        result = weir_put_f64(t->s, (double)argument / 8, 3);
    }
    return check_all_or_none(t, text, result, strlen(text));
}

static int64_t print_step(struct checked_stream *t, unsigned char *text, uint64_t argument)
{
    static char expected[TEXT_MAX + 64];
    text[make_text(t, text, length_of(argument))] = '\0';
    int length = snprintf(expected, sizeof expected, "%s=%llu\n", (char *)text, (unsigned long long)argument);
    int64_t result = weir_printf(t->s, "%s=%llu\n", (char *)text, (unsigned long long)argument);
    return check_all_or_none(t, expected, result, (size_t)length);
}

static int64_t putrec_step(struct checked_stream *t, unsigned char *text, uint64_t argument)
{
    size_t bytes = make_text(t, text, length_of(argument));
    int64_t result = weir_putrec(t->s, text, bytes);
    if (result >= 0 && t->config->separator >= 0)
        text[bytes] = (unsigned char)t->config->separator;
    if (result >= 0 && (size_t)result != bytes)
        checked_fail(t, "putrec returned %lld for %zu", (long long)result, bytes);
    if (result >= 0)
        checked_accept(t, text, bytes + (t->config->separator >= 0));
    t->generated += bytes;
    return result;
}

static int64_t endrec_step(struct checked_stream *t)
{
    int64_t result = weir_endrec(t->s);
    unsigned char end = (unsigned char)t->config->separator;
    if (result == 0 && t->config->separator >= 0)
        checked_accept(t, &end, 1);
    return result;
}

static int64_t reserve_step(struct checked_stream *t, uint64_t argument)
{
    size_t bytes = length_of(argument);
    char *to;
    ssize_t room = weir_reserve(t->s, &to, bytes);
    if (room < 0)
        return room;
    if ((size_t)room < bytes || room == 0)
        checked_fail(t, "reserve returned %zd for %zu", room, bytes);
    memset(to, '#', (size_t)room); /* the caller owns all of it until weir_commit */
    size_t used = argument >> 20 & 1 ? bytes : bytes / 2;
    make_text(t, (unsigned char *)to, used);
    unsigned char text[TEXT_MAX];
    memcpy(text, to, used);
    if (argument >> 21 & 1)
        return 0; /* the program does not commit */
    int64_t result = weir_commit(t->s, used);
    if (result == 0)
        checked_accept(t, text, used);
    t->generated += used;
    return result;
}

int64_t checked_write_step(struct checked_stream *t, enum op op, uint64_t argument)
{
    static unsigned char text[TEXT_MAX * 4];
    int64_t result = 0;
    size_t bytes;
    switch (op) {
    case OP_PUTC:
    case OP_NEWLINE:
        text[0] = op == OP_NEWLINE ? '\n' : byte_of(t->generated);
        result = weir_putc(t->s, text[0]);
        if (result >= 0 && result != text[0])
            checked_fail(t, "putc returned %lld", (long long)result);
        check_accepted(t, text, result < 0 ? result : 1, 1);
        break;
    case OP_WRITE:
        bytes = make_text(t, text, length_of(argument));
        result = check_accepted(t, text, weir_write(t->s, text, bytes), bytes);
        break;
    case OP_PUT_STR:
        text[bytes = make_text(t, text, length_of(argument))] = '\0';
        result = check_all_or_none(t, text, weir_put_str(t->s, (char *)text), bytes);
        break;
    case OP_WRITEV: result = writev_step(t, text, argument); break;
    case OP_PRINTF: result = print_step(t, text, argument); break;
    case OP_PUT_NUMBER: result = put_number_step(t, argument); break;
    case OP_PUTREC: result = putrec_step(t, text, argument); break;
    case OP_ENDREC: result = endrec_step(t); break;
    default: result = reserve_step(t, argument); break;
    }
    checked_error_allowed(t, result, op);
    return result;
}
