/* call_series.c: random calls on a stream over a file; each result is compared with the model. */
#include "call_series.h"

#include <stdio.h>

/* Returns a size from one of the interesting ranges: zero, bytes, lines, near blocks and pages, whole blocks, large. */
static size_t random_size(struct call_series *cs)
{
    static const size_t around[] = {511, 512, 513, 1024, 4095, 4096, 4097, 8192, 12288, 65536};
    size_t size = 0;
    switch (random_below(&cs->random, 6)) {
    case 0: size = random_below(&cs->random, 4); break;
    case 1: size = random_below(&cs->random, 120); break;
    case 2: size = around[random_below(&cs->random, 10)]; break;
    case 3: size = 512 * random_below(&cs->random, 40); break;
    case 4: size = random_below(&cs->random, 9000); break;
    default: size = random_below(&cs->random, cs->largest_write + 1); break;
    }
    return size < cs->largest_write ? size : cs->largest_write;
}

static int64_t random_position(struct call_series *cs)
{
    int64_t limit = (int64_t)cs->model->size + 5000, at = (int64_t)random_below(&cs->random, (uint64_t)limit);
    if (random_below(&cs->random, 3) == 0)
        at -= at % 512;
    return at < (int64_t)cs->position_limit ? at : (int64_t)cs->position_limit;
}

static char *random_memory(struct call_series *cs)
{
    static const size_t offsets[] = {0, 0, 1, 4, 512, 520};
    uintptr_t page = ((uintptr_t)cs->memory + 4095) & ~(uintptr_t)4095;
    return (char *)page + offsets[random_below(&cs->random, 6)];
}

/* Checks the result of a call. Returns false if neither the model nor an injected error explains it. */
static bool expect(struct call_series *cs, const char *call, int64_t result, int64_t expected)
{
    if (result == expected)
        return true;
    if (cs->excuses && cs->excuses(cs, call, result))
        return true;
    return check(false, "%s returned %lld, not %lld (file of %zu, at %lld)", call, (long long)result,
                 (long long)expected, cs->model->size, (long long)cs->model->position);
}

static bool write_some(struct call_series *cs)
{
    size_t bytes = random_size(cs);
    char *from = random_memory(cs);
    if (cs->model->position + (int64_t)bytes > (int64_t)cs->position_limit)
        bytes = 0;
    model_text(&cs->random, from, bytes);
    ssize_t result;
    const char *call = "write";
    if (random_below(&cs->random, 4) == 0) {
        size_t first = bytes / 3, second = bytes / 2 - first;
        struct iovec parts[3] = {{from, first}, {from + first, second}, {from + bytes / 2, bytes - bytes / 2}};
        call = "writev";
        result = weir_writev(cs->s, parts, 3);
    } else {
        result = weir_write(cs->s, from, bytes);
    }
    if (result > 0)
        model_write(cs->model, from, (size_t)result);
    memset(from, '#', bytes); /* the stream must not read accepted bytes from the caller's memory again */
    return expect(cs, call, result, (int64_t)bytes);
}

static bool put_bytes(struct call_series *cs)
{
    uint64_t count = random_below(&cs->random, 30);
    for (uint64_t i = 0; i < count; i++) {
        char c = (char)('A' + random_below(&cs->random, 26));
        int result = weir_putc(cs->s, c);
        if (result >= 0)
            model_write(cs->model, &c, 1);
        if (!expect(cs, "putc", result, c))
            return false;
    }
    return true;
}

static bool print(struct call_series *cs)
{
    char text[64];
    unsigned value = (unsigned)random_next(&cs->random);
    int length = snprintf(text, sizeof text, "%u and %-9x\n", value, value);
    int result = weir_printf(cs->s, "%u and %-9x\n", value, value);
    if (result > 0)
        model_write(cs->model, text, (size_t)result);
    return expect(cs, "printf", result, length);
}

static bool put_record(struct call_series *cs)
{
    char *from = random_memory(cs);
    size_t bytes = random_below(&cs->random, 700);
    model_text(&cs->random, from, bytes);
    for (size_t i = 0; i < bytes; i++)
        from[i] = from[i] == '\n' ? '.' : from[i];
    from[bytes] = '\n';
    ssize_t result = weir_putrec(cs->s, from, bytes);
    if (result >= 0)
        model_write(cs->model, from, bytes + 1);
    return expect(cs, "putrec", result, (int64_t)bytes);
}

static bool reserve(struct call_series *cs)
{
    char *to;
    size_t wanted = random_below(&cs->random, 3) ? random_below(&cs->random, 3000) : 0;
    ssize_t room = weir_reserve(cs->s, &to, wanted);
    if (room < 0)
        return expect(cs, "reserve", room, (int64_t)wanted);
    if (!check(room >= (ssize_t)wanted, "reserve of %zu returned %zd", wanted, room))
        return false;
    size_t bytes = (size_t)room < 5000 ? (size_t)room : 5000;
    bytes = random_below(&cs->random, bytes + 1);
    model_text(&cs->random, to, bytes);
    model_write(cs->model, to, bytes);
    return expect(cs, "commit", weir_commit(cs->s, bytes), 0);
}

static bool flush(struct call_series *cs)
{
    int result = weir_flush(cs->s);
    if (!expect(cs, "flush", result, 0))
        return false;
    return result < 0 || cs->flags & SERIES_SKIPS_FILE_CHECK || model_matches_file(cs->model, cs->path);
}

static bool tell(struct call_series *cs)
{
    return expect(cs, "tell", weir_tell(cs->s), cs->model->position);
}

static bool seek(struct call_series *cs)
{
    int64_t to = random_position(cs), result;
    switch (random_below(&cs->random, 3)) {
    case 0: result = weir_seek(cs->s, to, SEEK_SET); break;
    case 1: result = weir_seek(cs->s, to - cs->model->position, SEEK_CUR); break;
    default: result = weir_seek(cs->s, to - (int64_t)cs->model->size, SEEK_END); break;
    }
    if (result >= 0)
        cs->model->position = to;
    return expect(cs, "seek", result, to);
}

static int64_t bytes_left(const struct model *m)
{
    return m->position < (int64_t)m->size ? (int64_t)m->size - m->position : 0;
}

static bool same_bytes(struct call_series *cs, const char *call, const char *got, ssize_t bytes)
{
    if (bytes > 0 && !check(memcmp(got, cs->model->bytes + cs->model->position, (size_t)bytes) == 0,
                            "%s of %zd at %lld returned wrong bytes", call, bytes, (long long)cs->model->position))
        return false;
    cs->model->position += bytes > 0 ? bytes : 0;
    return true;
}

static bool read_some(struct call_series *cs)
{
    size_t bytes = random_size(cs);
    char *to = random_memory(cs);
    ssize_t got = weir_read(cs->s, to, bytes);
    int64_t expected = bytes_left(cs->model) < (int64_t)bytes ? bytes_left(cs->model) : (int64_t)bytes;
    return expect(cs, "read", got, expected) && same_bytes(cs, "read", to, got);
}

static bool read_line(struct call_series *cs)
{
    char *line;
    ssize_t got = weir_getrec(cs->s, &line);
    const unsigned char *from = cs->model->bytes + cs->model->position;
    int64_t expected = bytes_left(cs->model);
    const unsigned char *end = expected ? memchr(from, '\n', (size_t)expected) : NULL;
    expected = end ? end - from + 1 : expected;
    return expect(cs, "getrec", got, expected) && same_bytes(cs, "getrec", line, got);
}

static bool read_byte(struct call_series *cs)
{
    int c = weir_getc(cs->s);
    if (bytes_left(cs->model) == 0)
        return expect(cs, "getc", c, WEIR_EOF);
    if (!expect(cs, "getc", c, cs->model->bytes[cs->model->position]))
        return false;
    cs->model->position += c >= 0;
    return c < 0 || random_below(&cs->random, 4) ||
           (expect(cs, "ungetc", weir_ungetc(cs->s, c), c) && cs->model->position-- > 0);
}

static bool set_mode(struct call_series *cs)
{
    static const size_t sizes[] = {0, 0, 1, 4096, 8192, 100000};
    enum weir_mode mode = (enum weir_mode)(WEIR_NONE + random_below(&cs->random, 4));
    size_t bytes = sizes[random_below(&cs->random, 6)];
    return expect(cs, "set_mode", weir_set_mode(cs->s, mode, bytes), 0);
}

static bool step(struct call_series *cs)
{
    uint64_t percent = random_below(&cs->random, 100);
    if (cs->flags & SERIES_READS && percent < 40)
        return percent < 15 ? read_some(cs) : percent < 28 ? read_line(cs) : read_byte(cs);
    if (cs->flags & SERIES_SEEKS && percent < 55)
        return seek(cs);
    if (cs->flags & SERIES_SETS_MODE && percent < 58)
        return set_mode(cs);
    switch (random_below(&cs->random, 12)) {
    case 0: case 1: case 2: case 3: return write_some(cs);
    case 4: case 5: return put_bytes(cs);
    case 6: return print(cs);
    case 7: return put_record(cs);
    case 8: return reserve(cs);
    case 9: return flush(cs);
    case 10: return tell(cs);
    default: return write_some(cs);
    }
}

bool run_series(struct call_series *cs, int steps)
{
    for (int i = 0; i < steps; i++)
        if (!step(cs))
            return false;
    return true;
}
