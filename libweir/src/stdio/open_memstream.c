/* open_memstream.c: a stream into memory that grows and is the caller's in the end. */
#include "stdio_private.h"

struct growing {
    char *data;
    size_t room, end, here;
    char **memory; /* where the caller sees it */
    size_t *bytes;
};

static void show(const struct growing *memory)
{
    *memory->memory = memory->data;
    *memory->bytes = memory->here < memory->end ? memory->here : memory->end;
}

static int make_room(struct growing *memory, size_t bytes)
{
    if (bytes <= memory->room)
        return 0;
    size_t wanted = memory->room * 2 > bytes ? memory->room * 2 : bytes;
    char *larger = realloc(memory->data, wanted);
    if (!larger)
        return -ENOMEM;
    memory->data = larger;
    memory->room = wanted;
    return 0;
}

/* What a seek left out is zeros. */
static ssize_t growing_write(void *context, const void *from, size_t bytes)
{
    struct growing *memory = context;
    int result = make_room(memory, memory->here + bytes + 1);
    if (result < 0)
        return result;
    if (memory->here > memory->end)
        memset(memory->data + memory->end, 0, memory->here - memory->end);
    memcpy(memory->data + memory->here, from, bytes);
    memory->here += bytes;
    if (memory->here > memory->end) {
        memory->end = memory->here;
        memory->data[memory->end] = '\0';
    }
    show(memory);
    return (ssize_t)bytes;
}

static int64_t growing_seek(void *context, int64_t offset, int whence)
{
    struct growing *memory = context;
    int64_t target = weir__stdio_target(offset, whence, (int64_t)memory->here, (int64_t)memory->end);
    if (target < 0 || target > (int64_t)WEIR_BUFFER_MAX * 1024)
        return -EINVAL;
    memory->here = (size_t)target;
    show(memory);
    return target;
}

/* The memory stays: it is the caller's. */
static int growing_close(void *context)
{
    free(context);
    return 0;
}

static struct growing *growing_new(char **data, size_t *bytes)
{
    struct growing *memory = calloc(1, sizeof *memory);
    char *first = calloc(1, 1);
    if (!memory || !first) {
        free(memory);
        free(first);
        return NULL;
    }
    *memory = (struct growing){.data = first, .room = 1, .memory = data, .bytes = bytes};
    return memory;
}

weir_stream *weir_stdio_open_memstream(char **data, size_t *bytes)
{
    static const struct weir_callbacks callbacks = {
        .write = growing_write,
        .seek = growing_seek,
        .close = growing_close,
    };
    weir_stream *s = NULL;
    if (!data || !bytes)
        return weir__stdio_result(NULL, -EINVAL);
    struct growing *memory = growing_new(data, bytes);
    if (!memory)
        return weir__stdio_result(NULL, -ENOMEM);
    int result = weir__stdio_open_callbacks(&s, &callbacks, memory, "w", WEIR_FORK_KEEP);
    if (result == 0) {
        show(memory);
        return s;
    }
    free(memory->data);
    free(memory);
    return weir__stdio_result(NULL, result);
}
