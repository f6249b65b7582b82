/* subject_write.c: the steps that write. Every byte's value is given by its number, so that a byte that is
 * lost, doubled or out of order is seen. */
#include <stdio.h>

#include "subject.h"

enum { TEXT_MAX = 12000 };

static unsigned char byte_of(uint64_t number)
{
    if (number % 11 == 7)
        return '\n';
    return (unsigned char)((number % 3 ? 'a' : 'A') + number / 3 % 26);
}

static size_t make_text(const struct subject *t, unsigned char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        text[i] = byte_of(t->made + i);
    return bytes;
}

/* Mostly short, now and then longer than any buffer that is tried. */
static size_t length_of(uint64_t argument)
{
    static const size_t lengths[] = {0, 1, 2, 3, 5, 7, 8, 13, 16, 17, 30, 64, 100, 4095, 4097, 9000};
    return argument % 256 < 240 ? argument % 40 : lengths[argument % 16];
}

static int64_t accepted(struct subject *t, const void *bytes, int64_t result, size_t most)
{
    if (result > 0 && (size_t)result > most) {
        subject_wrong(t, "%lld accepted of %zu", (long long)result, most);
        return result;
    }
    if (result > 0)
        subject_accept(t, bytes, (size_t)result);
    if (result >= 0 && (size_t)result < most && !subject_may_fail(t) && !t->sync_failed)
        subject_wrong(t, "%lld accepted of %zu", (long long)result, most);
    t->made += most;
    return result;
}

/* The whole or nothing. */
static int64_t whole(struct subject *t, const void *bytes, int64_t result, size_t must)
{
    if (result >= 0 && (size_t)result != must)
        subject_wrong(t, "%lld returned for %zu", (long long)result, must);
    return accepted(t, bytes, result, must);
}

static int64_t writev_step(struct subject *t, unsigned char *text, uint64_t argument)
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
    return accepted(t, text, weir_writev(t->s, parts, count), bytes);
}

static int64_t put_number_step(struct subject *t, uint64_t argument)
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
    return whole(t, text, result, strlen(text));
}

static int64_t print_step(struct subject *t, unsigned char *text, uint64_t argument)
{
    static char expected[TEXT_MAX + 64];
    text[make_text(t, text, length_of(argument))] = '\0';
    int length = snprintf(expected, sizeof expected, "%s=%llu\n", (char *)text, (unsigned long long)argument);
    int64_t result = weir_printf(t->s, "%s=%llu\n", (char *)text, (unsigned long long)argument);
    return whole(t, expected, result, (size_t)length);
}

static int64_t putrec_step(struct subject *t, unsigned char *text, uint64_t argument)
{
    size_t bytes = make_text(t, text, length_of(argument));
    int64_t result = weir_putrec(t->s, text, bytes);
    if (result >= 0 && t->config->separator >= 0)
        text[bytes] = (unsigned char)t->config->separator;
    if (result >= 0 && (size_t)result != bytes)
        subject_wrong(t, "putrec returned %lld for %zu", (long long)result, bytes);
    if (result >= 0)
        subject_accept(t, text, bytes + (t->config->separator >= 0));
    t->made += bytes;
    return result;
}

static int64_t endrec_step(struct subject *t)
{
    int64_t result = weir_endrec(t->s);
    unsigned char end = (unsigned char)t->config->separator;
    if (result == 0 && t->config->separator >= 0)
        subject_accept(t, &end, 1);
    return result;
}

static int64_t reserve_step(struct subject *t, uint64_t argument)
{
    size_t bytes = length_of(argument);
    char *to;
    ssize_t room = weir_reserve(t->s, &to, bytes);
    if (room < 0)
        return room;
    if ((size_t)room < bytes || room == 0)
        subject_wrong(t, "reserve gave %zd for %zu", room, bytes);
    memset(to, '#', (size_t)room); /* all of it is the caller's, until weir_commit */
    size_t used = argument >> 20 & 1 ? bytes : bytes / 2;
    make_text(t, (unsigned char *)to, used);
    unsigned char text[TEXT_MAX];
    memcpy(text, to, used);
    if (argument >> 21 & 1)
        return 0; /* changed its mind */
    int64_t result = weir_commit(t->s, used);
    if (result == 0)
        subject_accept(t, text, used);
    t->made += used;
    return result;
}

int64_t subject_write_step(struct subject *t, enum op op, uint64_t argument)
{
    static unsigned char text[TEXT_MAX * 4];
    int64_t result = 0;
    size_t bytes;
    switch (op) {
    case OP_PUTC:
    case OP_NEWLINE:
        text[0] = op == OP_NEWLINE ? '\n' : byte_of(t->made);
        result = weir_putc(t->s, text[0]);
        if (result >= 0 && result != text[0])
            subject_wrong(t, "putc returned %lld", (long long)result);
        accepted(t, text, result < 0 ? result : 1, 1);
        break;
    case OP_WRITE:
        bytes = make_text(t, text, length_of(argument));
        result = accepted(t, text, weir_write(t->s, text, bytes), bytes);
        break;
    case OP_PUT_STR:
        text[bytes = make_text(t, text, length_of(argument))] = '\0';
        result = whole(t, text, weir_put_str(t->s, (char *)text), bytes);
        break;
    case OP_WRITEV: result = writev_step(t, text, argument); break;
    case OP_PRINTF: result = print_step(t, text, argument); break;
    case OP_PUT_NUMBER: result = put_number_step(t, argument); break;
    case OP_PUTREC: result = putrec_step(t, text, argument); break;
    case OP_ENDREC: result = endrec_step(t); break;
    default: result = reserve_step(t, argument); break;
    }
    subject_error_is_right(t, result, op);
    return result;
}
