/* pipe.c: the end of input that is not seekable: a ring with as few blocks as suffice. */
#include "tail.h"

enum { BLOCK = 1 << 16 };

struct block {
    struct block *next;
    size_t used;
    uint64_t units; /* newlines or bytes in this block */
    char data[BLOCK];
};

struct ring {
    const struct request *request;
    struct block *first, *last;
    uint64_t units; /* in all blocks */
};

/* Returns a block to fill: the first one, if the others contain enough without it. For lines the ring must
 * keep one newline more than requested: the one before the first line. */
static struct block *take_block(struct ring *ring)
{
    struct block *block = ring->first;
    if (block && ring->units - block->units > ring->request->count) {
        ring->first = block->next;
        ring->units -= block->units;
    } else {
        block = malloc(sizeof *block);
    }
    return block;
}

/* Returns the last block if it has room, otherwise NULL. */
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
    uint64_t units = ring->request->bytes ? (uint64_t)got : count_newlines(to, (size_t)got);
    block->used += (size_t)got;
    block->units += units;
    ring->units += units;
    return got;
}

/* Returns how many bytes of the block precede the end of its `skip`th unit. */
static size_t before(const struct ring *ring, const struct block *block, uint64_t skip)
{
    if (skip == 0 || ring->request->bytes)
        return (size_t)skip;
    return (size_t)(nth_newline(block->data, block->used, skip) - block->data) + 1;
}

/* The last block is empty if the input ended after a full one. */
static bool ends_within_line(const struct ring *ring)
{
    const struct block *last = NULL;
    for (const struct block *block = ring->first; block; block = block->next)
        last = block->used ? block : last;
    return last && last->data[last->used - 1] != '\n';
}

static void put_last(const struct ring *ring, weir_stream *out)
{
    uint64_t units = ring->units + (!ring->request->bytes && ends_within_line(ring));
    uint64_t skip = units > ring->request->count ? units - ring->request->count : 0;
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

/* Returns 0 or a read error as -errno; exits on a write error. */
int last_of_pipe(const struct request *request, weir_stream *in, weir_stream *out)
{
    struct ring ring = { .request = request };
    int64_t result;
    while ((result = fill(&ring, in)) > 0)
        ;
    if (result == 0)
        put_last(&ring, out);
    free_ring(&ring);
    return (int)result;
}
