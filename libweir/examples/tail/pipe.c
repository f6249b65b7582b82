/* pipe.c: the end of what cannot be seeked: a ring of blocks, as few as hold enough. */
#include "tail.h"

enum { BLOCK = 1 << 16 };

struct block {
    struct block *next;
    size_t used;
    uint64_t units; /* newlines or bytes in it */
    char data[BLOCK];
};

struct ring {
    const struct order *order;
    struct block *first, *last;
    uint64_t units; /* of all blocks */
};

/* The first block is used again when the others hold enough without it. With lines one more newline than
 * asked for must stay: the one before the first line. */
static struct block *take_block(struct ring *ring)
{
    struct block *block = ring->first;
    if (block && ring->units - block->units > ring->order->count) {
        ring->first = block->next;
        ring->units -= block->units;
    } else {
        block = malloc(sizeof *block);
    }
    return block;
}

/* A block with room at the end of the ring, or NULL. */
static struct block *last_with_room(struct ring *ring)
{
    if (ring->last && ring->last->used < BLOCK)
        return ring->last;
    struct block *block = take_block(ring);
    if (!block)
        return NULL;
    block->next = NULL;
    block->used = block->units = 0;
    if (ring->first)
        ring->last->next = block;
    else
        ring->first = block;
    return ring->last = block;
}

static int64_t fill(struct ring *ring, weir_stream *in)
{
    struct block *block = last_with_room(ring);
    if (!block)
        return -ENOMEM;
    char *to = block->data + block->used;
    ssize_t got = weir_read_some(in, to, BLOCK - block->used);
    if (got <= 0)
        return got;
    uint64_t units = ring->order->bytes ? (uint64_t)got : count_newlines(to, (size_t)got);
    block->used += (size_t)got;
    block->units += units;
    ring->units += units;
    return got;
}

/* How many bytes of the block lie before its `skip`th unit's end. */
static size_t before(const struct ring *ring, const struct block *block, uint64_t skip)
{
    if (skip == 0 || ring->order->bytes)
        return (size_t)skip;
    return (size_t)(nth_newline(block->data, block->used, skip) - block->data) + 1;
}

/* An empty last block can be there when the end came right behind a full one. */
static bool ends_within_line(const struct ring *ring)
{
    const struct block *last = NULL;
    for (const struct block *block = ring->first; block; block = block->next)
        last = block->used ? block : last;
    return last && last->data[last->used - 1] != '\n';
}

static void put_last(const struct ring *ring, weir_stream *out)
{
    uint64_t units = ring->units + (!ring->order->bytes && ends_within_line(ring));
    uint64_t skip = units > ring->order->count ? units - ring->order->count : 0;
    const struct block *block = ring->first;
    for (; block && skip > block->units; block = block->next)
        skip -= block->units;
    for (; block; block = block->next, skip = 0) {
        size_t from = before(ring, block, skip);
        put(out, block->data + from, block->used - from, STDOUT_NAME);
    }
}

static void free_ring(struct ring *ring)
{
    for (struct block *next, *block = ring->first; block; block = next) {
        next = block->next;
        free(block);
    }
}

/* 0, or -errno of reading; what cannot be written ends the program. */
int last_of_pipe(const struct order *order, weir_stream *in, weir_stream *out)
{
    struct ring ring = { .order = order };
    int64_t result;
    while ((result = fill(&ring, in)) > 0)
        ;
    if (result == 0)
        put_last(&ring, out);
    free_ring(&ring);
    return (int)result;
}
