/* sink_memory.c: streams over memory: reading the caller's, and collecting output in memory that grows. */
#include "private.h"

/* Has no operations: a reader's buffer is the memory itself, a collector's buffer grows and is never
 * drained. */
const struct weir__sink weir__sink_memory = {0};

static int create(weir_stream **s, const struct weir_options **options)
{
    static const struct weir_options defaults;
    *options = *options ? *options : &defaults;
    *s = NULL;
    int result = weir__options_check(*options);
    if (result < 0)
        return result;
    if ((*options)->durability != WEIR_PROCESS || (*options)->stale_ms)
        return -EINVAL; /* there is no sink to drain to */
    if ((*options)->flags & ~(WEIR_THREADS | WEIR_KEEP_OPEN) || (*options)->buffer)
        return -EINVAL;
    result = weir__new(s, &weir__sink_memory, *options);
    if (result == 0) /* the data is private memory: a forked child gets its copy */
        weir__set_on_fork(*s, WEIR_FORK_KEEP);
    return result;
}

static int activate_or_free(weir_stream **s, int result)
{
    if (result == 0)
        result = weir__activate(*s);
    if (result < 0) {
        weir__free(*s);
        *s = NULL;
    }
    return result;
}

int weir_open_memory(weir_stream **s, const void *memory, size_t bytes, const struct weir_options *options)
{
    int result = create(s, &options);
    if (result < 0)
        return result;
    struct weir__config *config = weir__config(*s);
    config->can_read = true;
    config->mode = WEIR_FULL;
    config->read_buffer = (char *)(uintptr_t)memory; /* never written to: see make_pushback_room in read.c */
    config->read_capacity = bytes;
    result = activate_or_free(s, 0);
    if (result < 0)
        return result;
    (*s)->held_read_limit = (*s)->read + bytes;
    weir__set_limits(*s);
    return 0;
}

int weir_open_collector(weir_stream **s, const struct weir_options *options)
{
    int result = create(s, &options);
    if (result < 0)
        return result;
    struct weir__config *config = weir__config(*s);
    config->can_write = true;
    config->mode = options->mode == WEIR_RECORD ? WEIR_RECORD : WEIR_FULL;
    return activate_or_free(s, weir__buffers_init(*s, options, 4096));
}

ssize_t weir_memory(weir_stream *s, char **memory)
{
    weir__enter(s);
    struct weir__config *config = weir__config(s);
    ssize_t result = -EINVAL;
    if (config->sink == &weir__sink_memory && config->can_write) {
        *memory = config->buffer;
        result = (ssize_t)(weir__written(s) + weir__state(s)->record_bytes);
    }
    weir__leave(s);
    return result;
}
