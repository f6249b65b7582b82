/* options.c: validates options and chooses default buffer sizes. */
#include "private.h"

/* Default sizes. KNEE: larger buffers gained little with weir bench on the tested kernels. PIPE_CAPACITY:
 * Linux's default, see pipe(7). */
enum { KNEE = 128 * 1024, PIPE_CAPACITY = 64 * 1024, TERMINAL = 4096 };

int weir__options_check(const struct weir_options *options)
{
    unsigned known = WEIR_THREADS | WEIR_LOCK_FILE | WEIR_DIRECT | WEIR_URING | WEIR_HOLDER | WEIR_SHARE | WEIR_KEEP_OPEN;
    bool kill_safe = options->durability == WEIR_KILL;
    if (options->mode > WEIR_RECORD || options->durability > WEIR_WHOLE || options->on_fork > WEIR_FORK_KEEP ||
        options->access > WEIR_ACCESS_RANDOM || options->flags & ~known || options->reserved_0)
        return -EINVAL;
    for (size_t i = 0; i < sizeof options->reserved / sizeof *options->reserved; i++)
        if (options->reserved[i])
            return -EINVAL; /* reserved for a later version */
    if (options->separator < WEIR_SEPARATOR_NONE || options->separator > WEIR_SEPARATOR_NUL)
        return -EINVAL;
    if (options->buffer_bytes > WEIR_BUFFER_MAX || (options->buffer && !options->buffer_bytes))
        return -EINVAL;
    if (kill_safe && (options->buffer || options->on_fork == WEIR_FORK_KEEP || options->flags & (WEIR_URING | WEIR_DIRECT)))
        return -EINVAL; /* the shared mapping must be the only buffer */
    if ((options->flags & WEIR_HOLDER || options->spill) && !kill_safe)
        return -EINVAL;
    if (options->flags & WEIR_URING && options->flags & (WEIR_DIRECT | WEIR_LOCK_FILE))
        return -EINVAL;
    if (options->flags & (WEIR_URING | WEIR_DIRECT) && options->on_fork == WEIR_FORK_KEEP)
        return -EINVAL;
    return 0;
}

size_t weir__default_bytes(const weir_stream *s, int64_t block_bytes)
{
    const struct weir__config *config = weir__config(s);
    if (config->fd < 0 || config->is_pipe)
        return PIPE_CAPACITY;
    if (!config->regular && !config->seekable)
        return config->terminal ? TERMINAL : PIPE_CAPACITY;
    size_t bytes = KNEE;
    if (block_bytes > 0 && block_bytes <= (1 << 24)) /* whole blocks, at least KNEE */
        bytes = (size_t)((KNEE + block_bytes - 1) / block_bytes * block_bytes);
    return bytes;
}
