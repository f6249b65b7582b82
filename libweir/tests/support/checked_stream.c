/* checked_stream.c: opening, the checks after every step, and the steps that move the position. */
#include "checked_stream.h"

#include <stdarg.h>
#include <stdio.h>

const char *op_name(enum op op)
{
    static const char *const names[OPS] = {
        "putc", "newline", "write",  "writev", "printf",  "put_str", "put_number", "putrec",  "endrec", "reserve",
        "flush", "sync",   "whole",  "getc",   "read",    "some",    "getrec",     "peek",    "skip",   "ungetc",
        "seek", "seek_by", "seek_end", "tell", "fileno",  "set_mode", "share",     "clear"};
    return names[op];
}

bool checked_fail(struct checked_stream *t, const char *format, ...)
{
    char what[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    t->failures++;
    return check(false, "%s\n  after%s", what, t->log);
}

int checked_open(struct checked_stream *t, enum fake_kind kind, int oflags, const struct weir_options *options,
                 const char *content, size_t bytes)
{
    memset(t, 0, sizeof *t);
    fake_file_make(&t->file, kind);
    t->options = *options;
    t->seekable = kind == FAKE_FILE;
    t->append = oflags & O_APPEND;
    t->can_read = (oflags & O_ACCMODE) != O_WRONLY;
    if (t->seekable || t->can_read)
        fake_file_fill(&t->file, content, bytes);
    t->can_write = (oflags & O_ACCMODE) != O_RDONLY;
    t->fd = fake_open(&t->file, oflags);
    t->expected = malloc(t->expected_capacity = bytes + 256);
    if (!t->expected)
        abort();
    if (kind == FAKE_FILE) {
        memcpy(t->expected, content, bytes);
        t->expected_size = bytes;
    }
    int result = weir_fdopen(&t->s, t->fd, options);
    if (result == 0) {
        t->state = weir__state(t->s);
        t->config = weir__config(t->s);
    }
    return result;
}

void checked_free(struct checked_stream *t)
{
    free(t->expected);
    fake_file_free(&t->file);
}

/* Drops the pushed-back bytes from the model and moves its position before them: the stream does so when it gives
 * its read-ahead bytes back. */
static void drop_pushed_back(struct checked_stream *t)
{
    if (t->pushed_count == 0 || !t->seekable)
        return;
    t->position = t->position > (int64_t)t->pushed_count ? t->position - (int64_t)t->pushed_count : 0;
    t->pushed_count = 0;
}

void checked_accept(struct checked_stream *t, const void *bytes, size_t count)
{
    if (count == 0)
        return;
    drop_pushed_back(t);
    if (t->append && t->seekable)
        t->position = (int64_t)t->expected_size;
    size_t at = t->seekable ? (size_t)t->position : t->expected_size;
    if (at + count > t->expected_capacity) {
        t->expected_capacity = (at + count) * 2;
        t->expected = realloc(t->expected, t->expected_capacity);
        if (!t->expected)
            abort();
    }
    if (at > t->expected_size)
        memset(t->expected + t->expected_size, 0, at - t->expected_size);
    memcpy(t->expected + at, bytes, count);
    if (at + count > t->expected_size)
        t->expected_size = at + count;
    if (t->seekable)
        t->position += (int64_t)count;
}

int checked_next_byte(const struct checked_stream *t, size_t ahead)
{
    if (ahead < t->pushed_count)
        return t->pushed[t->pushed_count - 1 - ahead];
    size_t at = (size_t)t->position + ahead - t->pushed_count;
    bool duplex = t->file.kind == FAKE_TERMINAL || t->file.kind == FAKE_SOCKET;
    const unsigned char *from = duplex ? t->file.input : t->seekable ? t->expected : t->file.bytes;
    size_t size = duplex ? t->file.input_size : t->seekable ? t->expected_size : t->file.size;
    return at < size ? from[at] : -1;
}

bool checked_may_fail(const struct checked_stream *t) { return t->fault_is_visible && fake_hits() > 0; }

bool checked_error_allowed(struct checked_stream *t, int64_t result, enum op op)
{
    bool reads = op >= OP_GETC && op <= OP_UNGETC;
    if (result >= 0 || checked_may_fail(t) || result == t->sync_failed)
        return true;
    if (result == -EBADF && op < OP_FLUSH && !t->can_write) {
        t->write_was_refused = true;
        return true;
    }
    if (result == -EBADF && ((reads && !t->can_read) || t->write_was_refused))
        return true; /* the error of a refused write sticks */
    if (result == -EBADF && (op == OP_SYNC || op == OP_SYNC_WHOLE) && !t->can_write)
        return true;
    if (result == -EINVAL && (op == OP_SYNC || op == OP_SYNC_WHOLE) && !t->seekable)
        return true; /* a pipe, terminal or socket cannot be synced */
    if (result == -ESPIPE && !t->seekable && op >= OP_SEEK && op <= OP_TELL)
        return true;
    return checked_fail(t, "%s returned %lld", op_name(op), (long long)result);
}

/* Checks that the file, with the pending bytes at the descriptor's position, is the expected content. */
static bool check_bytes(struct checked_stream *t)
{
    uint64_t drained = weir__drained(t->s), pending = weir__pending(t->s) + t->state->record_bytes;
    if (weir__written(t->s) < drained)
        return checked_fail(t, "written %llu < drained %llu", (unsigned long long)weir__written(t->s),
                             (unsigned long long)drained);
    const unsigned char *buffer = pending ? (const unsigned char *)t->config->buffer + drained : NULL;
    struct fake_file *f = &t->file;
    size_t at = t->append || !t->seekable ? f->size : (size_t)fake_position(t->fd);
    size_t end = pending && at + pending > f->size ? at + pending : f->size;
    bool is_read_end = f->kind == FAKE_PIPE && t->can_read;
    if (is_read_end)
        return true;
    if (end != t->expected_size)
        return checked_fail(t, "%zu bytes in file (%zu) and buffer (%llu), not %zu", end, f->size,
                            (unsigned long long)pending, t->expected_size);
    for (size_t i = 0; i < end; i++) {
        unsigned char is = pending && i >= at && i < at + pending ? buffer[i - at] : i < f->size ? f->bytes[i] : 0;
        if (is != t->expected[i])
            return checked_fail(t, "byte %zu is %02x, not %02x", i, is, t->expected[i]);
    }
    return true;
}

/* Checks what the mode and the durability guarantee after a call, unless a fault or an error explains more pending
 * bytes. */
static void check_mode(struct checked_stream *t, int64_t result, enum op op)
{
    uint64_t pending = weir__pending(t->s);
    if (op == OP_CLEAR && pending)
        t->error_was_cleared = true;
    t->error_was_cleared = t->error_was_cleared && pending;
    if (checked_may_fail(t) || t->error_was_cleared || t->state->error || result < 0 || !t->can_write)
        return;
    const char *from = pending ? t->config->buffer + weir__drained(t->s) : NULL;
    bool writes_at_once =
        t->config->mode == WEIR_NONE || (t->config->durability >= WEIR_KERNEL &&
                                         (t->config->mode == WEIR_FULL || t->config->mode == WEIR_RECORD));
    if (writes_at_once && pending)
        checked_fail(t, "%s left %llu bytes pending", op_name(op), (unsigned long long)pending);
    if (pending && t->config->mode == WEIR_LINE && t->config->separator >= 0 &&
        memchr(from, t->config->separator, pending))
        checked_fail(t, "%s left a whole line pending", op_name(op));
    if ((op == OP_FLUSH || op == OP_SYNC || op == OP_SYNC_WHOLE) && pending + t->state->record_bytes)
        checked_fail(t, "%s left %llu bytes pending", op_name(op), (unsigned long long)pending);
    if ((op == OP_SYNC || op == OP_SYNC_WHOLE) && t->file.synced != t->file.written)
        checked_fail(t, "%s left %llu bytes without a sync", op_name(op),
                      (unsigned long long)(t->file.written - t->file.synced));
    struct weir_stats stats;
    weir_get_stats(t->s, &stats);
    if (stats.pending_bytes != pending + t->state->record_bytes)
        checked_fail(t, "weir_get_stats counts %llu pending bytes", (unsigned long long)stats.pending_bytes);
}

static void check_position(struct checked_stream *t, const char *call, int64_t is)
{
    int64_t expected = t->position - (int64_t)t->pushed_count;
    expected = expected < 0 ? 0 : expected;
    if (is != expected)
        checked_fail(t, "%s: %lld, not %lld", call, (long long)is, (long long)expected);
}

static int64_t seek_step(struct checked_stream *t, enum op op, uint64_t argument)
{
    int64_t before = t->position - (int64_t)t->pushed_count;
    int64_t base = op == OP_SEEK ? 0 : op == OP_SEEK_END ? (int64_t)t->expected_size : before < 0 ? 0 : before;
    int64_t offset = op == OP_SEEK ? (int64_t)argument : (int64_t)(argument % 61) - 40;
    int whence = op == OP_SEEK ? SEEK_SET : op == OP_SEEK_END ? SEEK_END : SEEK_CUR;
    int64_t result = weir_seek(t->s, offset, whence);
    if (t->seekable && base + offset < 0 && result == -EINVAL)
        return 0;
    if (!checked_error_allowed(t, result, op) || result < 0)
        return result;
    if (t->sync_failed == 0 && t->seekable && base + offset < 0)
        checked_fail(t, "a seek before the beginning returned %lld", (long long)result);
    t->pushed_count = 0;
    t->position = base + offset;
    check_position(t, op_name(op), result);
    return result;
}

static int64_t other_step(struct checked_stream *t, enum op op, uint64_t argument)
{
    static const size_t sizes[] = {0, 1, 2, 5, 64, 5000};
    int64_t result = 0;
    switch (op) {
    case OP_FLUSH: result = weir_flush(t->s); break;
    case OP_SYNC: result = weir_sync(t->s, WEIR_DATA); break;
    case OP_SYNC_WHOLE: result = weir_sync(t->s, WEIR_WHOLE); break;
    case OP_TELL: result = weir_tell(t->s); break;
    case OP_FILENO: result = weir_fileno(t->s); break;
    case OP_SHARE: result = weir_share(t->s); break;
    case OP_CLEAR:
        weir_clear(t->s);
        t->write_was_refused = false;
        break;
    case OP_SET_MODE:
        result = weir_set_mode(t->s, (enum weir_mode)(argument % 5), sizes[argument / 5 % 6]);
        break;
    default: return seek_step(t, op, argument);
    }
    if (checked_error_allowed(t, result, op) && result >= 0 && op == OP_TELL)
        check_position(t, "tell", result);
    if (result >= 0 && (op == OP_SYNC || op == OP_SYNC_WHOLE) && t->sync_failed)
        checked_fail(t, "a sync after a failed one returned %lld", (long long)result);
    bool gives_back = op == OP_FILENO || op == OP_SHARE || (op == OP_FLUSH && t->config->share);
    if (result >= 0 && gives_back && t->can_read) {
        drop_pushed_back(t);
        if (t->seekable && fake_position(t->fd) != t->position)
            checked_fail(t, "%s left the descriptor at %lld, not %lld", op_name(op),
                          (long long)fake_position(t->fd), (long long)t->position);
    }
    return result;
}

static void log_step(struct checked_stream *t, enum op op, uint64_t argument)
{
    size_t used = strlen(t->log);
    if (used + 40 < sizeof t->log)
        snprintf(t->log + used, sizeof t->log - used, " %s:%llu", op_name(op), (unsigned long long)argument);
}

static void log_result(struct checked_stream *t, int64_t result)
{
    size_t used = strlen(t->log);
    if (used + 24 < sizeof t->log)
        snprintf(t->log + used, sizeof t->log - used, "=%lld", (long long)result);
}

int64_t checked_step(struct checked_stream *t, enum op op, uint64_t argument)
{
    log_step(t, op, argument);
    bool was_reading = t->state->reading, was_empty = weir__unread(t->s) == 0;
    int64_t result = op < OP_FLUSH                        ? checked_write_step(t, op, argument)
                     : op >= OP_GETC && op <= OP_UNGETC ? checked_read_step(t, op, argument)
                                                          : other_step(t, op, argument);
    log_result(t, result);
    if ((was_reading && !t->state->reading) || weir__unread(t->s) < t->pushed_count)
        drop_pushed_back(t); /* a sync of a shared stream gives read-ahead bytes back, too */
    if (fake_failed_sync())
        t->sync_failed = -fake_failed_sync();
    bool reads = op >= OP_GETC && op <= OP_UNGETC && op != OP_PEEK && op != OP_UNGETC && !t->options.max_record_bytes;
    if (reads && was_empty && result >= 0 && t->config->share && !t->seekable && weir__unread(t->s))
        checked_fail(t, "%s read %llu bytes ahead of a shared pipe", op_name(op),
                     (unsigned long long)weir__unread(t->s));
    check_bytes(t);
    check_mode(t, result, op);
    return result;
}

void checked_remove_faults(struct checked_stream *t)
{
    fake_plan(NULL);
    t->file.space = 0;
    weir_clear(t->s);
    if (t->can_write)
        checked_step(t, OP_FLUSH, 0);
}

int checked_close(struct checked_stream *t)
{
    uint64_t lost = 0;
    bool sync_failed = t->sync_failed != 0;
    size_t used = strlen(t->log);
    snprintf(t->log + used, sizeof t->log - used, " close");
    int result = weir_close_lost(t->s, &lost);
    if (result == -EAGAIN)
        return result;
    if (fake_is_open(t->fd))
        checked_fail(t, "the descriptor is open after close");
    if (sync_failed && result == 0)
        checked_fail(t, "close returned 0 after a failed sync");
    if (t->file.kind == FAKE_PIPE && t->can_read)
        return result;
    if (lost == 0 && (t->file.size != t->expected_size ||
                      (t->expected_size && memcmp(t->file.bytes, t->expected, t->expected_size) != 0)))
        checked_fail(t, "close lost bytes and reports none: the file has %zu of %zu", t->file.size, t->expected_size);
    if (lost && result == 0)
        checked_fail(t, "close lost %llu bytes and returned 0", (unsigned long long)lost);
    return result;
}
