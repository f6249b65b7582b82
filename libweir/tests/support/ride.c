/* ride.c: random calls on a stream over a file, each compared with the model. */
#include "model.h"

#include <stdio.h>

/* Sizes that matter: nothing, bytes, lines, around blocks and pages, whole blocks, large. */
static size_t some_size(struct ride *r)
{
    static const size_t around[] = {511, 512, 513, 1024, 4095, 4096, 4097, 8192, 12288, 65536};
    size_t size = 0;
    switch (random_below(&r->random, 6)) {
    case 0: size = random_below(&r->random, 4); break;
    case 1: size = random_below(&r->random, 120); break;
    case 2: size = around[random_below(&r->random, 10)]; break;
    case 3: size = 512 * random_below(&r->random, 40); break;
    case 4: size = random_below(&r->random, 9000); break;
    default: size = random_below(&r->random, r->largest + 1); break;
    }
    return size < r->largest ? size : r->largest;
}

static int64_t some_position(struct ride *r)
{
    int64_t limit = (int64_t)r->model->size + 5000, at = (int64_t)random_below(&r->random, (uint64_t)limit);
    if (random_below(&r->random, 3) == 0)
        at -= at % 512;
    return at < (int64_t)r->file_limit ? at : (int64_t)r->file_limit;
}

static char *some_memory(struct ride *r)
{
    static const size_t offsets[] = {0, 0, 1, 4, 512, 520};
    uintptr_t page = ((uintptr_t)r->memory + 4095) & ~(uintptr_t)4095;
    return (char *)page + offsets[random_below(&r->random, 6)];
}

/* What a call returned, of which `done` bytes were accepted. */
static bool is_right(struct ride *r, const char *call, int64_t result, int64_t expected)
{
    if (result == expected)
        return true;
    if (r->excuse && r->excuse(r, call, result))
        return true;
    return check(false, "%s returned %lld, not %lld (file of %zu, at %lld)", call, (long long)result,
                 (long long)expected, r->model->size, (long long)r->model->at);
}

static bool write_some(struct ride *r)
{
    size_t bytes = some_size(r);
    char *from = some_memory(r);
    if (r->model->at + (int64_t)bytes > (int64_t)r->file_limit)
        bytes = 0;
    model_text(&r->random, from, bytes);
    ssize_t result;
    const char *call = "write";
    if (random_below(&r->random, 4) == 0) {
        size_t first = bytes / 3, second = bytes / 2 - first;
        struct iovec parts[3] = {{from, first}, {from + first, second}, {from + bytes / 2, bytes - bytes / 2}};
        call = "writev";
        result = weir_writev(r->s, parts, 3);
    } else {
        result = weir_write(r->s, from, bytes);
    }
    if (result > 0)
        model_write(r->model, from, (size_t)result);
    memset(from, '#', bytes); /* what was accepted must not be looked at any more */
    return is_right(r, call, result, (int64_t)bytes);
}

static bool put_bytes(struct ride *r)
{
    uint64_t count = random_below(&r->random, 30);
    for (uint64_t i = 0; i < count; i++) {
        char c = (char)('A' + random_below(&r->random, 26));
        int result = weir_putc(r->s, c);
        if (result >= 0)
            model_write(r->model, &c, 1);
        if (!is_right(r, "putc", result, c))
            return false;
    }
    return true;
}

static bool print(struct ride *r)
{
    char text[64];
    unsigned value = (unsigned)random_next(&r->random);
    int length = snprintf(text, sizeof text, "%u and %-9x\n", value, value);
    int result = weir_printf(r->s, "%u and %-9x\n", value, value);
    if (result > 0)
        model_write(r->model, text, (size_t)result);
    return is_right(r, "printf", result, length);
}

static bool put_record(struct ride *r)
{
    char *from = some_memory(r);
    size_t bytes = random_below(&r->random, 700);
    model_text(&r->random, from, bytes);
    for (size_t i = 0; i < bytes; i++)
        from[i] = from[i] == '\n' ? '.' : from[i];
    from[bytes] = '\n';
    ssize_t result = weir_putrec(r->s, from, bytes);
    if (result >= 0)
        model_write(r->model, from, bytes + 1);
    return is_right(r, "putrec", result, (int64_t)bytes);
}

static bool reserve(struct ride *r)
{
    char *to;
    size_t wanted = random_below(&r->random, 3) ? random_below(&r->random, 3000) : 0;
    ssize_t room = weir_reserve(r->s, &to, wanted);
    if (room < 0)
        return is_right(r, "reserve", room, (int64_t)wanted);
    if (!check(room >= (ssize_t)wanted, "reserve of %zu gave %zd", wanted, room))
        return false;
    size_t bytes = (size_t)room < 5000 ? (size_t)room : 5000;
    bytes = random_below(&r->random, bytes + 1);
    model_text(&r->random, to, bytes);
    model_write(r->model, to, bytes);
    return is_right(r, "commit", weir_commit(r->s, bytes), 0);
}

static bool flush(struct ride *r)
{
    int result = weir_flush(r->s);
    if (!is_right(r, "flush", result, 0))
        return false;
    return result < 0 || r->does & RIDE_STAYS || model_is_in(r->model, r->path);
}

static bool tell(struct ride *r)
{
    return is_right(r, "tell", weir_tell(r->s), r->model->at);
}

static bool seek(struct ride *r)
{
    int64_t to = some_position(r), result;
    switch (random_below(&r->random, 3)) {
    case 0: result = weir_seek(r->s, to, SEEK_SET); break;
    case 1: result = weir_seek(r->s, to - r->model->at, SEEK_CUR); break;
    default: result = weir_seek(r->s, to - (int64_t)r->model->size, SEEK_END); break;
    }
    if (result >= 0)
        r->model->at = to;
    return is_right(r, "seek", result, to);
}

static int64_t coming(const struct model *m) { return m->at < (int64_t)m->size ? (int64_t)m->size - m->at : 0; }

static bool same(struct ride *r, const char *call, const char *got, ssize_t bytes)
{
    if (bytes > 0 && !check(memcmp(got, r->model->bytes + r->model->at, (size_t)bytes) == 0,
                            "%s of %zd at %lld gave other bytes", call, bytes, (long long)r->model->at))
        return false;
    r->model->at += bytes > 0 ? bytes : 0;
    return true;
}

static bool read_some(struct ride *r)
{
    size_t bytes = some_size(r);
    char *to = some_memory(r);
    ssize_t got = weir_read(r->s, to, bytes);
    int64_t expected = coming(r->model) < (int64_t)bytes ? coming(r->model) : (int64_t)bytes;
    return is_right(r, "read", got, expected) && same(r, "read", to, got);
}

static bool read_line(struct ride *r)
{
    char *line;
    ssize_t got = weir_getrec(r->s, &line);
    const unsigned char *from = r->model->bytes + r->model->at;
    int64_t expected = coming(r->model);
    const unsigned char *end = expected ? memchr(from, '\n', (size_t)expected) : NULL;
    expected = end ? end - from + 1 : expected;
    return is_right(r, "getrec", got, expected) && same(r, "getrec", line, got);
}

static bool read_byte(struct ride *r)
{
    int c = weir_getc(r->s);
    if (coming(r->model) == 0)
        return is_right(r, "getc", c, WEIR_EOF);
    if (!is_right(r, "getc", c, r->model->bytes[r->model->at]))
        return false;
    r->model->at += c >= 0;
    return c < 0 || random_below(&r->random, 4) ||
           (is_right(r, "ungetc", weir_ungetc(r->s, c), c) && r->model->at-- > 0);
}

static bool set_mode(struct ride *r)
{
    static const size_t sizes[] = {0, 0, 1, 4096, 8192, 100000};
    enum weir_mode mode = (enum weir_mode)(WEIR_NONE + random_below(&r->random, 4));
    size_t bytes = sizes[random_below(&r->random, 6)];
    return is_right(r, "set_mode", weir_set_mode(r->s, mode, bytes), 0);
}

static bool step(struct ride *r)
{
    uint64_t turn = random_below(&r->random, 100);
    if (r->does & RIDE_READS && turn < 40)
        return turn < 15 ? read_some(r) : turn < 28 ? read_line(r) : read_byte(r);
    if (r->does & RIDE_SEEKS && turn < 55)
        return seek(r);
    if (r->does & RIDE_MODES && turn < 58)
        return set_mode(r);
    switch (random_below(&r->random, 12)) {
    case 0: case 1: case 2: case 3: return write_some(r);
    case 4: case 5: return put_bytes(r);
    case 6: return print(r);
    case 7: return put_record(r);
    case 8: return reserve(r);
    case 9: return flush(r);
    case 10: return tell(r);
    default: return write_some(r);
    }
}

bool ride(struct ride *r, int steps)
{
    for (int i = 0; i < steps; i++)
        if (!step(r))
            return false;
    return true;
}
