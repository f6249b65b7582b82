/* stdio_ext.c: the functions of stdio_ext(3). */
#include "stdio_private.h"

/* Discards pending and unread bytes. */
void weir_stdio_fpurge(weir_stream *s)
{
    weir__enter(s);
    weir__state(s)->record_bytes = weir__state(s)->inherited = 0;
    weir__state(s)->reserved = NULL;
    if (weir__config(s)->sink->write) {
        WEIR_PUBLISH(&weir__head(s)->drained, weir__written(s));
        weir__reset(s);
    }
    if (weir__config(s)->sink->read)
        weir__discard_read(s);
    weir__leave(s);
}

size_t weir_stdio_fpending(weir_stream *s)
{
    weir__enter(s);
    size_t bytes = (size_t)(weir__pending(s) + weir__state(s)->record_bytes);
    weir__leave(s);
    return bytes;
}

size_t weir_stdio_fbufsize(weir_stream *s)
{
    const struct weir__config *config = weir__config(s);
    if (config->mode == WEIR_NONE)
        return 1;
    return config->can_write ? config->capacity : config->read_capacity;
}

int weir_stdio_freadable(weir_stream *s) { return weir__config(s)->can_read; }
int weir_stdio_fwritable(weir_stream *s) { return weir__config(s)->can_write; }

/* For a stream in both directions: the direction last used. */
int weir_stdio_freading(weir_stream *s)
{
    const struct weir__config *config = weir__config(s);
    return config->can_read && (!config->can_write || weir__state(s)->reading);
}

int weir_stdio_fwriting(weir_stream *s)
{
    const struct weir__config *config = weir__config(s);
    return config->can_write && (!config->can_read || weir_stdio_fpending(s) > 0);
}

int weir_stdio_flbf(weir_stream *s) { return weir_get_mode(s) == WEIR_LINE; }
void weir_stdio_flushlbf(void) { weir_flush_all(); }

/* ---- musl's additions to stdio_ext.h, which gnulib uses ---- */

size_t weir_stdio_freadahead(weir_stream *s) { return (size_t)weir__unread(s); }

const char *weir_stdio_freadptr(weir_stream *s, size_t *bytes)
{
    *bytes = (size_t)weir__unread(s);
    return *bytes ? weir__next(s) : NULL;
}

void weir_stdio_freadptrinc(weir_stream *s, size_t bytes) { WEIR_STORE(&s->read, s->read + bytes); }

void weir_stdio_fseterr(weir_stream *s)
{
    weir__enter(s);
    weir__config(s)->stdio_failed = true;
    weir__leave(s);
}

/* Always locks: an uncontended lock is cheap. */
int weir_stdio_fsetlocking(weir_stream *s, int type)
{
    (void)s;
    (void)type;
    return FSETLOCKING_INTERNAL;
}
