/* sink_memory.c: streams over memory: to read a piece of the caller's, to collect what is written. */
#include "private.h"

/* No functions at all: the reader's buffer is the memory, the collector's grows and never drains. */
const struct weir__sink weir__sink_memory = {0};

static int begin(weir_stream **s, const struct weir_options **options)
{
    static const struct weir_options defaults;
    *options = *options ? *options : &defaults;
    *s = NULL;
    int result = weir__options_check(*options);
    if (result < 0)
        return result;
    if ((*options)->durability != WEIR_PROCESS || (*options)->stale_ms)
        return -EINVAL; /* there is nowhere to go to */
    if ((*options)->flags & ~(WEIR_THREADS | WEIR_KEEP_OPEN) || (*options)->buffer)
        return -EINVAL;
    result = weir__new(s, &weir__sink_memory, *options);
    if (result == 0) /* nobody else reads or writes these bytes: a child has its copy of them, as of all memory */
        weir__set_on_fork(*s, WEIR_FORK_KEEP);
    return result;
}

static int end(weir_stream **s, int result)
{
    if (result == 0)
        result = weir__ready(*s);
    if (result < 0) {
        weir__free(*s);
        *s = NULL;
    }
    return result;
}

int weir_open_memory(weir_stream **s, const void *memory, size_t bytes, const struct weir_options *options)
{
    int result = begin(s, &options);
    if (result < 0)
        return result;
    struct weir__own *own = weir__own(*s);
    own->can_read = true;
    own->mode = WEIR_FULL;
    own->read_buffer = (char *)(uintptr_t)memory; /* never written to: read_mapped is 0, see read.c */
    own->read_capacity = bytes;
    result = end(s, 0);
    if (result < 0)
        return result;
    (*s)->held_read_limit = (*s)->read + bytes;
    weir__set_limits(*s);
    return 0;
}

int weir_open_collector(weir_stream **s, const struct weir_options *options)
{
    int result = begin(s, &options);
    if (result < 0)
        return result;
    struct weir__own *own = weir__own(*s);
    own->can_write = true;
    own->mode = options->mode == WEIR_RECORD ? WEIR_RECORD : WEIR_FULL;
    return end(s, weir__buffers_make(*s, options, 4096));
}

ssize_t weir_memory(weir_stream *s, char **memory)
{
    weir__enter(s);
    struct weir__own *own = weir__own(s);
    ssize_t result = -EINVAL;
    if (own->sink == &weir__sink_memory && own->can_write) {
        *memory = own->buffer;
        result = (ssize_t)(weir__written(s) + weir__hot(s)->record_bytes);
    }
    weir__leave(s);
    return result;
}
