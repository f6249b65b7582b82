/* model.c: the expected content of a file, and its comparison with the file. */
#include "model.h"

#include <stdio.h>
#include <unistd.h>

void model_init(struct model *m, bool append)
{
    *m = (struct model){.append = append};
}

void model_free(struct model *m)
{
    free(m->bytes);
    m->bytes = NULL;
}

static void grow(struct model *m, size_t size)
{
    if (size > m->capacity) {
        m->capacity = size * 2;
        m->bytes = realloc(m->bytes, m->capacity);
        if (!m->bytes)
            abort();
    }
    if (size > m->size)
        memset(m->bytes + m->size, 0, size - m->size);
    m->size = size > m->size ? size : m->size;
}

void model_write(struct model *m, const void *from, size_t bytes)
{
    if (bytes == 0)
        return;
    size_t at = m->append ? m->size : (size_t)m->position;
    grow(m, at + bytes);
    memcpy(m->bytes + at, from, bytes);
    m->position = (int64_t)(at + bytes);
}

void model_text(struct random *r, char *to, size_t bytes)
{
    uint64_t word = 0;
    for (size_t i = 0; i < bytes; i++) {
        if (i % 8 == 0)
            word = random_next(r);
        unsigned value = word >> i % 8 * 8 & 0xff;
        to[i] = value < 6 ? '\n' : (char)('a' + value % 26);
    }
}

bool model_matches_file(const struct model *m, const char *path)
{
    static unsigned char piece[65536];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t at = 0;
    if (!check(fd >= 0, "%s cannot be opened", path))
        return false;
    for (;;) {
        ssize_t got = read(fd, piece, sizeof piece);
        if (got <= 0)
            break;
        size_t same = 0;
        while (same < (size_t)got && at + same < m->size && piece[same] == m->bytes[at + same])
            same++;
        at += same;
        if (same < (size_t)got)
            break;
    }
    off_t size = lseek(fd, 0, SEEK_END);
    close(fd);
    return check(at == m->size && (size_t)size == m->size, "%s: %lld bytes, not %zu; equal up to %zu", path,
                 (long long)size, m->size, at);
}
