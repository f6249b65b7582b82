/* fgets.c: fgets, getline and getdelim. */
#include "stdio_private.h"

#include <limits.h>

/* Returns how many unread bytes to copy: at most `max`, up to and with the first delimiter. Sets *found if they include it. */
static size_t length_of(const weir_stream *s, int delimiter, size_t max, bool *found)
{
    size_t unread = (size_t)weir__unread(s);
    const char *from = weir__next(s);
    const char *end = memchr(from, delimiter, unread < max ? unread : max);
    *found = end != NULL;
    return end ? (size_t)(end - from) + 1 : unread < max ? unread : max;
}

static void consume(weir_stream *s, char *to, size_t bytes)
{
    memcpy(to, weir__next(s), bytes);
    WEIR_STORE(&s->read, s->read + bytes);
}

/* An error discards the bytes read so far, except EAGAIN, after which the caller can try again. */
char *weir_stdio_fgets(char *to, int room, weir_stream *s)
{
    if (room <= 0)
        return NULL;
    size_t length = 0, max = (size_t)room - 1;
    bool found = false;
    int status = 1;
    weir__enter(s);
    while (length < max && !found && (status = weir__stdio_fill(s)) > 0) {
        size_t bytes = length_of(s, '\n', max - length, &found);
        consume(s, to + length, bytes);
        length += bytes;
    }
    weir__leave(s);
    if ((length == 0 && max > 0) || (status < 0 && errno != EAGAIN))
        return NULL;
    to[length] = '\0';
    return to;
}

/* Grows *line to at least `bytes`, at least doubling it. */
static bool make_room(char **line, size_t *room, size_t bytes)
{
    if (*line && *room >= bytes)
        return true;
    size_t wanted = *line && *room < SIZE_MAX / 2 ? *room * 2 : 0;
    wanted = wanted < bytes ? bytes : wanted;
    wanted = wanted < 128 ? 128 : wanted;
    char *larger = realloc(*line, wanted);
    if (!larger) {
        errno = ENOMEM;
        return false;
    }
    *line = larger;
    *room = wanted;
    return true;
}

static ssize_t getdelim_held(char **line, size_t *room, int delimiter, weir_stream *s)
{
    size_t length = 0;
    bool found = false;
    if (!make_room(line, room, 1))
        return -1;
    while (!found && weir__stdio_fill(s) > 0) {
        size_t bytes = length_of(s, delimiter, SIZE_MAX, &found);
        if (bytes >= SSIZE_MAX - length) {
            errno = EOVERFLOW;
            return -1;
        }
        if (!make_room(line, room, length + bytes + 1))
            return -1;
        consume(s, *line + length, bytes);
        length += bytes;
    }
    (*line)[length] = '\0';
    return length ? (ssize_t)length : -1;
}

ssize_t weir_stdio_getdelim(char **line, size_t *room, int delimiter, weir_stream *s)
{
    if (!line || !room) {
        errno = EINVAL;
        return -1;
    }
    if (!*line)
        *room = 0;
    weir__enter(s);
    ssize_t length = getdelim_held(line, room, delimiter, s);
    weir__leave(s);
    return length;
}

ssize_t weir_stdio_getline(char **line, size_t *room, weir_stream *s)
{
    return weir_stdio_getdelim(line, room, '\n', s);
}
