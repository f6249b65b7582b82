/* buffers.c: allocates, grows and frees the buffers of a stream. */
#include "private.h"

#include <sys/mman.h>

static size_t round_to_page(size_t bytes) { return (bytes + weir__page - 1) & ~(weir__page - 1); }

static int map(char **memory, size_t bytes)
{
    void *mapping = weir__pool_get(WEIR__POOL_BUFFERS, bytes);
    if (mapping) {
        *memory = mapping;
        return 0;
    }
    mapping = weir__kernel.mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED)
        return -errno;
    *memory = mapping;
    return 0;
}

static void unmap(char *memory, size_t bytes)
{
    if (bytes && !weir__pool_put(WEIR__POOL_BUFFERS, memory, bytes))
        weir__kernel.munmap(memory, bytes);
}

/* Allocates a read buffer with at least one page in front of read_start: room for weir_ungetc, and fills
 * start page-aligned. */
static int alloc_read(struct weir__config *config, size_t before, size_t capacity)
{
    before = round_to_page(before ? before : 1);
    if (config->direct)
        capacity = weir__direct_round_size(config, capacity);
    size_t bytes = before + round_to_page(capacity);
    int result = map(&config->read_buffer, bytes);
    if (result < 0)
        return result;
    config->read_mapped = bytes;
    config->read_start = before;
    config->read_capacity = capacity;
    return 0;
}

static int alloc_write(struct weir__config *config, size_t capacity)
{
    if (config->direct)
        capacity = weir__direct_round_size(config, capacity);
    /* Numbers are formatted in place, so the mapping has at least a page, whatever the capacity. */
    size_t bytes = round_to_page(capacity);
    int result = map(&config->buffer, bytes);
    if (result < 0)
        return result;
    config->mapped = bytes;
    config->capacity = capacity;
    if (config->direct)
        weir__direct_set_capacity(config);
    return 0;
}

/* Uses the part of the caller's memory that is aligned for O_DIRECT. The first unit of a read buffer keeps
 * the unread rest of a line in front of the next block. */
static int use_caller_aligned(struct weir__config *config)
{
    if (config->can_write && !weir__direct_align_memory(config, &config->buffer, &config->capacity))
        return -EINVAL;
    if (config->can_read && !weir__direct_align_memory(config, &config->read_buffer, &config->read_capacity))
        return -EINVAL;
    if (config->can_write)
        weir__direct_set_capacity(config);
    size_t before = weir__direct_round_size(config, 1);
    if (config->can_read && config->read_capacity > before) {
        config->read_start = before;
        config->read_capacity -= before;
    }
    return 0;
}

/* Uses the caller's memory for the stream's direction, or one half for each of two directions. */
static int use_caller_memory(struct weir__config *config, char *memory, size_t bytes)
{
    if (config->can_read && config->can_write && bytes < 2)
        return -EINVAL;
    size_t for_writing = !config->can_write ? 0 : config->can_read ? bytes / 2 : bytes;
    config->buffer = memory;
    config->capacity = for_writing;
    config->read_buffer = memory + for_writing;
    config->read_start = 0;
    config->read_capacity = bytes - for_writing;
    return config->direct ? use_caller_aligned(config) : 0;
}

int weir__buffers_init(weir_stream *s, const struct weir_options *options, size_t default_bytes)
{
    struct weir__config *config = weir__config(s);
    size_t bytes = options->buffer_bytes ? options->buffer_bytes : default_bytes;
    bool fixed_blocks = options->flags & (WEIR_DIRECT | WEIR_URING);
    config->bypass_bytes = options->buffer_bytes || fixed_blocks || bytes < WEIR_LARGE ? bytes : WEIR_LARGE;
    if (config->durability == WEIR_KILL && config->can_write) {
        config->capacity = bytes;
        return weir__spill_init(s, options);
    }
    if (options->buffer)
        return use_caller_memory(config, options->buffer, bytes);
    int result = config->can_write ? alloc_write(config, bytes) : 0;
    if (result == 0 && config->can_read && !config->read_buffer)
        result = alloc_read(config, 0, bytes);
    return result;
}

void weir__buffers_set_pointers(weir_stream *s)
{
    struct weir__config *config = weir__config(s);
    struct weir_head *head = weir__head(s);
    s->buffer = config->buffer;
    if (!config->spill) { /* pending bytes keep their offset */
        uint64_t written = weir__written(s);
        head->base = (uint64_t)(uintptr_t)config->buffer;
        WEIR_PUBLISH(&head->written, head->base + written);
    }
    s->read_buffer = config->read_buffer;
    if (config->spill && !config->shared_head)
        return; /* in a forked child: the head comes with the new spill file */
    head->magic = WEIR_HEAD_MAGIC;
    head->layout = WEIR_LAYOUT;
    head->pid = config->pid;
    head->buffer_bytes = config->capacity;
}

void weir__buffers_free(weir_stream *s)
{
    struct weir__config *config = weir__config(s);
    unmap(config->buffer, config->mapped);
    unmap(config->read_buffer, config->read_mapped);
    config->mapped = config->read_mapped = 0;
}

/* Never shrinks the buffer below its content. The maximum is twice WEIR_BUFFER_MAX: pending bytes and one
 * unit of maximal size behind them. */
int weir__grow_write(weir_stream *s, size_t capacity)
{
    struct weir__config *config = weir__config(s);
    uint64_t used = weir__written(s) + weir__state(s)->record_bytes;
    if (capacity > 2 * WEIR_BUFFER_MAX)
        return -EMSGSIZE;
    capacity = capacity < used ? used : capacity;
    if (config->spill)
        return weir__spill_grow(s, capacity);
    struct weir__config old = *config;
    int result = alloc_write(config, capacity);
    if (result < 0)
        return result;
    memcpy(config->buffer, old.buffer, used);
    weir__buffers_set_pointers(s);
    weir__set_limits(s);
    unmap(old.buffer, old.mapped);
    return 0;
}

int weir__grow_read(weir_stream *s, size_t before, size_t capacity)
{
    struct weir__config *config = weir__config(s);
    struct weir__config old = *config;
    uint64_t unread = weir__unread(s);
    int result = alloc_read(config, before, capacity > unread ? capacity : unread);
    if (result < 0)
        return result;
    if (unread > 0)
        memcpy(config->read_buffer + config->read_start, weir__next(s), unread);
    WEIR_STORE(&s->read, weir__read_start(s));
    s->held_read_limit = s->read + unread;
    weir__buffers_set_pointers(s);
    weir__set_limits(s);
    unmap(old.read_buffer, old.read_mapped);
    return 0;
}
