/* getrec.c: lines and records where they lie in the buffer. */
#include "private.h"

/* Takes the first `bytes` of the unread. */
static ssize_t give(weir_stream *s, char **record, uint64_t bytes)
{
    *record = weir__next(s);
    WEIR_STORE(&s->read, s->read + bytes);
    return (ssize_t)bytes;
}

/* More of the record. Where others read as well, nothing of the next one. */
static ssize_t fill(weir_stream *s)
{
    struct weir__own *own = weir__own(s);
    if (weir__hot(s)->read_error)
        return weir__hot(s)->read_error;
    if (weir__hot(s)->eof)
        return 0;
    bool careful = own->share && !own->seekable;
    return weir__fill(s, careful && own->separator >= 0 ? weir__look_ahead(s) : own->read_capacity);
}

static ssize_t getrec_held(weir_stream *s, char **record)
{
    struct weir__own *own = weir__own(s);
    uint64_t looked = 0;
    int result = weir__start_reading(s);
    if (result <= 0)
        return result;
    for (;;) {
        uint64_t unread = weir__unread(s);
        const char *start = weir__next(s);
        const char *end = NULL;
        if (own->separator >= 0 && unread > looked)
            end = memchr(start + looked, own->separator, unread - looked);
        uint64_t length = end ? (uint64_t)(end - start) + 1 : unread;
        if (own->max_record_bytes && length > own->max_record_bytes)
            return -EMSGSIZE;
        if (end)
            return give(s, record, length);
        looked = unread;
        ssize_t got = fill(s);
        if (got < 0)
            return got; /* the part that is there stays, for the next call */
        if (got == 0)
            return give(s, record, unread);
    }
}

ssize_t weir_getrec_slow(weir_stream *s, char **record)
{
    weir__enter(s);
    ssize_t result = getrec_held(s, record);
    weir__leave(s);
    return result;
}
