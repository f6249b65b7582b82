/* buffers.c: where a stream's buffers are, how large, and how they grow. */
#include "private.h"

#include <sys/mman.h>

static size_t round_to_page(size_t bytes) { return (bytes + weir__page - 1) & ~(weir__page - 1); }

static int map(char **memory, size_t bytes)
{
    void *got = weir__pool_take(WEIR__POOL_BUFFERS, bytes);
    if (got) {
        *memory = got;
        return 0;
    }
    got = weir__kernel.mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (got == MAP_FAILED)
        return -errno;
    *memory = got;
    return 0;
}

static void unmap(char *memory, size_t bytes)
{
    if (bytes && !weir__pool_give(WEIR__POOL_BUFFERS, memory, bytes))
        weir__kernel.munmap(memory, bytes);
}

/* Own read buffers have a page in front: room to push bytes back, and the fill begins aligned. */
static int make_read(struct weir__own *own, size_t before, size_t capacity)
{
    before = round_to_page(before ? before : 1);
    if (own->direct)
        capacity = weir__direct_size(own, capacity);
    size_t bytes = before + round_to_page(capacity);
    int result = map(&own->read_buffer, bytes);
    if (result < 0)
        return result;
    own->read_mapped = bytes;
    own->read_start = before;
    own->read_capacity = capacity;
    return 0;
}

static int make_write(struct weir__own *own, size_t capacity)
{
    if (own->direct)
        capacity = weir__direct_size(own, capacity);
    /* Numbers are formatted in the buffer whatever its size as the program sees it: a page at least. */
    size_t bytes = round_to_page(capacity);
    int result = map(&own->buffer, bytes);
    if (result < 0)
        return result;
    own->mapped = bytes;
    own->capacity = capacity;
    if (own->direct)
        weir__direct_sized(own);
    return 0;
}

/* Of the caller's memory what lies right for O_DIRECT; the part of a line that is left goes before a block. */
static int take_aligned(struct weir__own *own)
{
    if (own->can_write && !weir__direct_part_of(own, &own->buffer, &own->capacity))
        return -EINVAL;
    if (own->can_read && !weir__direct_part_of(own, &own->read_buffer, &own->read_capacity))
        return -EINVAL;
    if (own->can_write)
        weir__direct_sized(own);
    size_t before = weir__direct_size(own, 1);
    if (own->can_read && own->read_capacity > before) {
        own->read_start = before;
        own->read_capacity -= before;
    }
    return 0;
}

/* The caller's memory goes to the one direction there is, or a half to each. */
static int take_callers(struct weir__own *own, char *memory, size_t bytes)
{
    if (own->can_read && own->can_write && bytes < 2)
        return -EINVAL;
    size_t for_writing = !own->can_write ? 0 : own->can_read ? bytes / 2 : bytes;
    own->buffer = memory;
    own->capacity = for_writing;
    own->read_buffer = memory + for_writing;
    own->read_start = 0;
    own->read_capacity = bytes - for_writing;
    return own->direct ? take_aligned(own) : 0;
}

int weir__buffers_make(weir_stream *s, const struct weir_options *options, size_t default_bytes)
{
    struct weir__own *own = weir__own(s);
    size_t bytes = options->buffer_bytes ? options->buffer_bytes : default_bytes;
    bool in_blocks = options->flags & (WEIR_DIRECT | WEIR_URING);
    own->past_bytes = options->buffer_bytes || in_blocks || bytes < WEIR_LARGE ? bytes : WEIR_LARGE;
    if (own->durability == WEIR_KILL && own->can_write) {
        own->capacity = bytes;
        return weir__spill_make(s, options);
    }
    if (options->buffer)
        return take_callers(own, options->buffer, bytes);
    int result = own->can_write ? make_write(own, bytes) : 0;
    if (result == 0 && own->can_read && !own->read_buffer)
        result = make_read(own, 0, bytes);
    return result;
}

void weir__buffers_point(weir_stream *s)
{
    struct weir__own *own = weir__own(s);
    struct weir_head *head = weir__head(s);
    s->buffer = own->buffer;
    if (!own->spill) { /* what is in the buffer keeps its offset */
        uint64_t written = weir__written(s);
        head->base = (uint64_t)(uintptr_t)own->buffer;
        WEIR_PUBLISH(&head->written, head->base + written);
    }
    s->read_buffer = own->read_buffer;
    if (own->spill && !own->shared_head)
        return; /* a child's: its head comes with its file */
    head->magic = WEIR_HEAD_MAGIC;
    head->layout = WEIR_LAYOUT;
    head->pid = own->pid;
    head->buffer_bytes = own->capacity;
}

void weir__buffers_free(weir_stream *s)
{
    struct weir__own *own = weir__own(s);
    unmap(own->buffer, own->mapped);
    unmap(own->read_buffer, own->read_mapped);
    own->mapped = own->read_mapped = 0;
}

/* Never below what is in it; twice the largest buffer if something waits and a whole unit comes behind. */
int weir__grow_write(weir_stream *s, size_t capacity)
{
    struct weir__own *own = weir__own(s);
    uint64_t used = weir__written(s) + weir__hot(s)->record_bytes;
    if (capacity > 2 * WEIR_BUFFER_MAX)
        return -EMSGSIZE;
    capacity = capacity < used ? used : capacity;
    if (own->spill)
        return weir__spill_grow(s, capacity);
    struct weir__own was = *own;
    int result = make_write(own, capacity);
    if (result < 0)
        return result;
    memcpy(own->buffer, was.buffer, used);
    weir__buffers_point(s);
    weir__set_limits(s);
    unmap(was.buffer, was.mapped);
    return 0;
}

int weir__grow_read(weir_stream *s, size_t before, size_t capacity)
{
    struct weir__own *own = weir__own(s);
    struct weir__own was = *own;
    uint64_t unread = weir__unread(s);
    int result = make_read(own, before, capacity > unread ? capacity : unread);
    if (result < 0)
        return result;
    if (unread > 0)
        memcpy(own->read_buffer + own->read_start, weir__next(s), unread);
    WEIR_STORE(&s->read, weir__read_start(s));
    s->held_read_limit = s->read + unread;
    weir__buffers_point(s);
    weir__set_limits(s);
    unmap(was.read_buffer, was.read_mapped);
    return 0;
}
