/* getrec.c: returns lines and records in place, in the read buffer. */
#include "private.h"

/* Consumes the next `bytes` bytes and returns their address in *record. */
static ssize_t consume_record(weir_stream *s, char **record, uint64_t bytes)
{
    *record = weir__next(s);
    WEIR_STORE(&s->read, s->read + bytes);
    return (ssize_t)bytes;
}

/* Reads more of the record. From a shared source, no byte of the next record. */
static ssize_t fill(weir_stream *s)
{
    struct weir__config *config = weir__config(s);
    if (weir__state(s)->read_error)
        return weir__state(s)->read_error;
    if (weir__state(s)->eof)
        return 0;
    bool limited = config->share && !config->seekable && config->separator >= 0;
    if (limited)
        weir__flush_before_read(s); /* weir__peek_source may wait, too */
    return weir__fill(s, limited ? weir__peek_source(s) : config->read_capacity);
}

static ssize_t getrec_held(weir_stream *s, char **record)
{
    struct weir__config *config = weir__config(s);
    uint64_t searched = 0;
    int result = weir__start_reading(s);
    if (result <= 0)
        return result;
    for (;;) {
        uint64_t unread = weir__unread(s);
        const char *start = weir__next(s);
        const char *end = NULL;
        if (config->separator >= 0 && unread > searched)
            end = memchr(start + searched, config->separator, unread - searched);
        uint64_t length = end ? (uint64_t)(end - start) + 1 : unread;
        if (config->max_record_bytes && length > config->max_record_bytes)
            return -EMSGSIZE;
        if (end)
            return consume_record(s, record, length);
        searched = unread;
        ssize_t got = fill(s);
        if (got < 0)
            return got; /* the incomplete record stays in the buffer for the next call */
        if (got == 0)
            return consume_record(s, record, unread);
    }
}

ssize_t weir_getrec_slow(weir_stream *s, char **record)
{
    weir__enter(s);
    ssize_t result = getrec_held(s, record);
    weir__leave(s);
    return result;
}
