/* pipe.c: the last lines or bytes of input that cannot seek. Keeps only the blocks that they need. */
#include "tail.h"

enum { BLOCK = 1 << 16 };

struct block {
    struct block *next;
    size_t used;
    uint64_t units; /* newlines or bytes in this block */
    char data[BLOCK];
};

struct block_queue {
    const struct request *request;
    struct block *first, *last;
    uint64_t units; /* in all blocks */
};

/* Returns a block to fill: the first one, if the others contain enough without it. For lines the queue must
 * keep one newline more than requested: the one before the first line. */
static struct block *take_block(struct block_queue *queue)
{
    struct block *block = queue->first;
    if (block && queue->units - block->units > queue->request->count) {
        queue->first = block->next;
        queue->units -= block->units;
    } else {
        block = malloc(sizeof *block);
    }
    return block;
}

/* Returns the block to fill: the last one, or a new last one if that is full. NULL if memory is exhausted. */
static struct block *block_to_fill(struct block_queue *queue)
{
    if (queue->last && queue->last->used < BLOCK)
        return queue->last;
    struct block *block = take_block(queue);
    if (!block)
        return NULL;
    block->next = NULL;
    block->used = block->units = 0;
    if (queue->first)
        queue->last->next = block;
    else
        queue->first = block;
    return queue->last = block;
}

/* Reads once into the queue. Returns the number of bytes, 0 at the end, or -errno. */
static int64_t fill(struct block_queue *queue, weir_stream *in)
{
    struct block *block = block_to_fill(queue);
    if (!block)
        return -ENOMEM;
    char *to = block->data + block->used;
    ssize_t got = weir_read_some(in, to, BLOCK - block->used);
    if (got <= 0)
        return got;
    uint64_t units = queue->request->bytes ? (uint64_t)got : count_newlines(to, (size_t)got);
    block->used += (size_t)got;
    block->units += units;
    queue->units += units;
    return got;
}

/* Returns how many bytes of the block precede the end of its `skip`th unit. */
static size_t end_of_unit(const struct block_queue *queue, const struct block *block, uint64_t skip)
{
    if (skip == 0 || queue->request->bytes)
        return (size_t)skip;
    return (size_t)(nth_newline(block->data, block->used, skip) - block->data) + 1;
}

/* Returns whether the last line has no newline. The last block is empty if the input ended after a full one. */
static bool ends_within_line(const struct block_queue *queue)
{
    const struct block *last = NULL;
    for (const struct block *block = queue->first; block; block = block->next)
        last = block->used ? block : last;
    return last && last->data[last->used - 1] != '\n';
}

/* Writes the requested number of last units. */
static void put_last(const struct block_queue *queue, weir_stream *out)
{
    uint64_t units = queue->units + (!queue->request->bytes && ends_within_line(queue));
    uint64_t skip = units > queue->request->count ? units - queue->request->count : 0;
    const struct block *block = queue->first;
    for (; block && skip > block->units; block = block->next)
        skip -= block->units;
    for (; block; block = block->next, skip = 0) {
        size_t from = end_of_unit(queue, block, skip);
        put(out, block->data + from, block->used - from, STDOUT_NAME);
    }
}

static void free_blocks(struct block_queue *queue)
{
    for (struct block *next, *block = queue->first; block; block = next) {
        next = block->next;
        free(block);
    }
}

/* Returns 0 or a read error as -errno; exits on a write error. */
int last_of_pipe(const struct request *request, weir_stream *in, weir_stream *out)
{
    struct block_queue queue = { .request = request };
    int64_t result;
    while ((result = fill(&queue, in)) > 0)
        ;
    if (result == 0)
        put_last(&queue, out);
    free_blocks(&queue);
    return (int)result;
}
