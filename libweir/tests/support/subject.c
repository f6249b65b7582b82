/* subject.c: the stream, what must be true of it after every step, and its positions. */
#include "subject.h"

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

bool subject_wrong(struct subject *t, const char *format, ...)
{
    char what[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    t->failures++;
    return check(false, "%s\n  after%s", what, t->log);
}

int subject_open(struct subject *t, enum fake_kind kind, int oflags, const struct weir_options *options,
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
    t->image = malloc(t->room = bytes + 256);
    if (!t->image)
        abort();
    if (kind == FAKE_FILE) {
        memcpy(t->image, content, bytes);
        t->size = bytes;
    }
    int result = weir_fdopen(&t->s, t->fd, options);
    if (result == 0) {
        t->state = weir__state(t->s);
        t->config = weir__config(t->s);
    }
    return result;
}

void subject_free(struct subject *t)
{
    free(t->image);
    fake_file_free(&t->file);
}

/* What was pushed back is gone, and the position before it, when the stream gave back what it had read. */
static void forget_pushed(struct subject *t)
{
    if (t->pushed_count == 0 || !t->seekable)
        return;
    t->at = t->at > (int64_t)t->pushed_count ? t->at - (int64_t)t->pushed_count : 0;
    t->pushed_count = 0;
}

void subject_accept(struct subject *t, const void *bytes, size_t count)
{
    if (count == 0)
        return;
    forget_pushed(t);
    if (t->append && t->seekable)
        t->at = (int64_t)t->size;
    size_t at = t->seekable ? (size_t)t->at : t->size;
    if (at + count > t->room) {
        t->room = (at + count) * 2;
        t->image = realloc(t->image, t->room);
        if (!t->image)
            abort();
    }
    if (at > t->size)
        memset(t->image + t->size, 0, at - t->size);
    memcpy(t->image + at, bytes, count);
    if (at + count > t->size)
        t->size = at + count;
    if (t->seekable)
        t->at += (int64_t)count;
}

int subject_coming(const struct subject *t, size_t ahead)
{
    if (ahead < t->pushed_count)
        return t->pushed[t->pushed_count - 1 - ahead];
    size_t at = (size_t)t->at + ahead - t->pushed_count;
    bool apart = t->file.kind == FAKE_TERMINAL || t->file.kind == FAKE_SOCKET;
    const unsigned char *from = apart ? t->file.answers : t->seekable ? t->image : t->file.bytes;
    size_t size = apart ? t->file.answers_size : t->seekable ? t->size : t->file.size;
    return at < size ? from[at] : -1;
}

bool subject_may_fail(const struct subject *t) { return t->spoilt && fake_hits() > 0; }

bool subject_error_is_right(struct subject *t, int64_t result, enum op op)
{
    bool reads = op >= OP_GETC && op <= OP_UNGETC;
    if (result >= 0 || subject_may_fail(t) || result == t->sync_failed)
        return true;
    if (result == -EBADF && ((reads && !t->can_read) || (op < OP_FLUSH && !t->can_write)))
        return true;
    if (result == -EBADF && (op == OP_SYNC || op == OP_SYNC_WHOLE) && !t->can_write)
        return true;
    if (result == -EINVAL && (op == OP_SYNC || op == OP_SYNC_WHOLE) && !t->seekable)
        return true; /* there is nothing to be synced */
    if (result == -ESPIPE && !t->seekable && op >= OP_SEEK && op <= OP_TELL)
        return true;
    return subject_wrong(t, "%s returned %lld", op_name(op), (long long)result);
}

/* The file, and behind its descriptor's position what waits. */
static bool all_is_there(struct subject *t)
{
    uint64_t drained = weir__drained(t->s), waits = weir__pending(t->s) + t->state->record_bytes;
    if (weir__written(t->s) < drained)
        return subject_wrong(t, "written %llu < drained %llu", (unsigned long long)weir__written(t->s),
                             (unsigned long long)drained);
    const unsigned char *buffer = waits ? (const unsigned char *)t->config->buffer + drained : NULL;
    struct fake_file *f = &t->file;
    size_t at = t->append || !t->seekable ? f->size : (size_t)fake_position(t->fd);
    size_t end = waits && at + waits > f->size ? at + waits : f->size;
    bool pipe_to_read = f->kind == FAKE_PIPE && t->can_read;
    if (pipe_to_read)
        return true;
    if (end != t->size)
        return subject_wrong(t, "%zu bytes in file (%zu) and buffer (%llu), not %zu", end, f->size,
                             (unsigned long long)waits, t->size);
    for (size_t i = 0; i < end; i++) {
        unsigned char is = waits && i >= at && i < at + waits ? buffer[i - at] : i < f->size ? f->bytes[i] : 0;
        if (is != t->image[i])
            return subject_wrong(t, "byte %zu is %02x, not %02x", i, is, t->image[i]);
    }
    return true;
}

/* What the mode promises, if nothing was in the way. */
static void promises(struct subject *t, int64_t result, enum op op)
{
    uint64_t waits = weir__pending(t->s);
    if (op == OP_CLEAR && waits)
        t->excused = true;
    t->excused = t->excused && waits;
    if (subject_may_fail(t) || t->excused || t->state->error || result < 0 || !t->can_write)
        return;
    const char *from = waits ? t->config->buffer + weir__drained(t->s) : NULL;
    bool through =
        t->config->mode == WEIR_NONE || (t->config->durability >= WEIR_KERNEL &&
                                         (t->config->mode == WEIR_FULL || t->config->mode == WEIR_RECORD));
    if (through && waits)
        subject_wrong(t, "%s left %llu bytes", op_name(op), (unsigned long long)waits);
    if (waits && t->config->mode == WEIR_LINE && t->config->separator >= 0 &&
        memchr(from, t->config->separator, waits))
        subject_wrong(t, "%s left a whole line", op_name(op));
    if ((op == OP_FLUSH || op == OP_SYNC || op == OP_SYNC_WHOLE) && waits + t->state->record_bytes)
        subject_wrong(t, "%s left %llu bytes", op_name(op), (unsigned long long)waits);
    if ((op == OP_SYNC || op == OP_SYNC_WHOLE) && t->file.synced != t->file.written)
        subject_wrong(t, "%s left %llu bytes without a sync", op_name(op),
                      (unsigned long long)(t->file.written - t->file.synced));
    struct weir_stats stats;
    weir_get_stats(t->s, &stats);
    if (stats.pending_bytes != waits + t->state->record_bytes)
        subject_wrong(t, "stats say %llu pending", (unsigned long long)stats.pending_bytes);
}

static void position_is(struct subject *t, const char *what, int64_t is)
{
    int64_t expected = t->at - (int64_t)t->pushed_count;
    expected = expected < 0 ? 0 : expected;
    if (is != expected)
        subject_wrong(t, "%s: %lld, not %lld", what, (long long)is, (long long)expected);
}

static int64_t seek_step(struct subject *t, enum op op, uint64_t argument)
{
    int64_t before = t->at - (int64_t)t->pushed_count;
    int64_t base = op == OP_SEEK ? 0 : op == OP_SEEK_END ? (int64_t)t->size : before < 0 ? 0 : before;
    int64_t offset = op == OP_SEEK ? (int64_t)argument : (int64_t)(argument % 61) - 40;
    int whence = op == OP_SEEK ? SEEK_SET : op == OP_SEEK_END ? SEEK_END : SEEK_CUR;
    int64_t result = weir_seek(t->s, offset, whence);
    if (t->seekable && base + offset < 0 && result == -EINVAL)
        return 0;
    if (!subject_error_is_right(t, result, op) || result < 0)
        return result;
    if (t->sync_failed == 0 && t->seekable && base + offset < 0)
        subject_wrong(t, "a seek before the beginning returned %lld", (long long)result);
    t->pushed_count = 0;
    t->at = base + offset;
    position_is(t, op_name(op), result);
    return result;
}

static int64_t other_step(struct subject *t, enum op op, uint64_t argument)
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
    case OP_CLEAR: weir_clear(t->s); break;
    case OP_SET_MODE:
        result = weir_set_mode(t->s, (enum weir_mode)(argument % 5), sizes[argument / 5 % 6]);
        break;
    default: return seek_step(t, op, argument);
    }
    if (subject_error_is_right(t, result, op) && result >= 0 && op == OP_TELL)
        position_is(t, "tell", result);
    if (result >= 0 && (op == OP_SYNC || op == OP_SYNC_WHOLE) && t->sync_failed)
        subject_wrong(t, "a sync after a failed one returned %lld", (long long)result);
    bool gives_back = op == OP_FILENO || op == OP_SHARE || (op == OP_FLUSH && t->config->share);
    if (result >= 0 && gives_back && t->can_read) {
        forget_pushed(t);
        if (t->seekable && fake_position(t->fd) != t->at)
            subject_wrong(t, "%s left the descriptor at %lld, not %lld", op_name(op),
                          (long long)fake_position(t->fd), (long long)t->at);
    }
    return result;
}

static void note(struct subject *t, enum op op, uint64_t argument)
{
    size_t used = strlen(t->log);
    if (used + 40 < sizeof t->log)
        snprintf(t->log + used, sizeof t->log - used, " %s:%llu", op_name(op), (unsigned long long)argument);
}

static void note_result(struct subject *t, int64_t result)
{
    size_t used = strlen(t->log);
    if (used + 24 < sizeof t->log)
        snprintf(t->log + used, sizeof t->log - used, "=%lld", (long long)result);
}

int64_t subject_step(struct subject *t, enum op op, uint64_t argument)
{
    note(t, op, argument);
    bool was_reading = t->state->reading, was_empty = weir__unread(t->s) == 0;
    int64_t result = op < OP_FLUSH                        ? subject_write_step(t, op, argument)
                     : op >= OP_GETC && op <= OP_UNGETC ? subject_read_step(t, op, argument)
                                                          : other_step(t, op, argument);
    note_result(t, result);
    if ((was_reading && !t->state->reading) || weir__unread(t->s) < t->pushed_count)
        forget_pushed(t); /* a sync of a shared stream gives back as well */
    if (fake_failed_sync())
        t->sync_failed = -fake_failed_sync();
    bool takes = op >= OP_GETC && op <= OP_UNGETC && op != OP_PEEK && op != OP_UNGETC && !t->options.max_record_bytes;
    if (takes && was_empty && result >= 0 && t->config->share && !t->seekable && weir__unread(t->s))
        subject_wrong(t, "%s took %llu bytes that belong to others", op_name(op), (unsigned long long)weir__unread(t->s));
    all_is_there(t);
    promises(t, result, op);
    return result;
}

void subject_heal(struct subject *t)
{
    fake_plan(NULL);
    t->file.space = 0;
    weir_clear(t->s);
    if (t->can_write)
        subject_step(t, OP_FLUSH, 0);
}

int subject_close(struct subject *t)
{
    uint64_t lost = 0;
    bool sync_failed = t->sync_failed != 0;
    size_t used = strlen(t->log);
    snprintf(t->log + used, sizeof t->log - used, " close");
    int result = weir_close_lost(t->s, &lost);
    if (result == -EAGAIN)
        return result;
    if (fake_is_open(t->fd))
        subject_wrong(t, "the descriptor is open after close");
    if (sync_failed && result == 0)
        subject_wrong(t, "close says 0 after a failed sync");
    if (t->file.kind == FAKE_PIPE && t->can_read)
        return result;
    if (lost == 0 && (t->file.size != t->size || (t->size && memcmp(t->file.bytes, t->image, t->size) != 0)))
        subject_wrong(t, "close lost bytes and did not say so: %zu of %zu", t->file.size, t->size);
    if (lost && result == 0)
        subject_wrong(t, "close lost %llu bytes and says 0", (unsigned long long)lost);
    return result;
}
