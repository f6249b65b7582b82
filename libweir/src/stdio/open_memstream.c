/* open_memstream.c: streams into memory that grows and belongs to the caller: bytes, or wide characters. */
#include "stdio_private.h"

struct memstream {
    char *data;
    size_t room, end, position; /* bytes */
    size_t unit;                /* bytes of a character */
    void *caller_data;          /* a char ** or wchar_t **, updated by publish() */
    size_t *caller_length;      /* characters */
};

static void publish(const struct memstream *memory)
{
    memcpy(memory->caller_data, &memory->data, sizeof memory->data);
    *memory->caller_length = (memory->position < memory->end ? memory->position : memory->end) / memory->unit;
}

static int make_room(struct memstream *memory, size_t bytes)
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

/* Fills a gap left by a seek with zeros. Does not store the address in the caller's variables: they may be gone, if the
 * stream was left open and is flushed at exit or with all others. */
static ssize_t memstream_write(void *context, const void *from, size_t bytes)
{
    struct memstream *memory = context;
    int result = make_room(memory, memory->position + bytes + memory->unit);
    if (result < 0)
        return result;
    if (memory->position > memory->end)
        memset(memory->data + memory->end, 0, memory->position - memory->end);
    memcpy(memory->data + memory->position, from, bytes);
    memory->position += bytes;
    if (memory->position > memory->end) {
        memory->end = memory->position;
        memset(memory->data + memory->end, 0, memory->unit);
    }
    return (ssize_t)bytes;
}

static int64_t memstream_seek(void *context, int64_t offset, int whence)
{
    struct memstream *memory = context;
    int64_t target = weir__stdio_seek_target(offset, whence, (int64_t)memory->position, (int64_t)memory->end);
    if (target < 0 || target > (int64_t)WEIR_BUFFER_MAX * 1024)
        return -EINVAL;
    memory->position = (size_t)target;
    publish(memory);
    return target;
}

/* Does not free the data, which is the caller's. Stores its address and length again: the caller's variables may have
 * other values meanwhile. */
static int memstream_close(void *context)
{
    publish(context);
    free(context);
    return 0;
}

void weir__stdio_publish_memstream(weir_stream *s)
{
    if (weir__config(s)->callbacks.write == memstream_write)
        publish(weir__config(s)->context);
}

static struct memstream *memstream_new(size_t unit, void *data, size_t *length)
{
    struct memstream *memory = calloc(1, sizeof *memory);
    char *first = calloc(1, unit);
    if (!memory || !first) {
        free(memory);
        free(first);
        return NULL;
    }
    *memory =
        (struct memstream){.data = first, .room = unit, .unit = unit, .caller_data = data, .caller_length = length};
    return memory;
}

static weir_stream *open_memory(size_t unit, void *data, size_t *length)
{
    static const struct weir_callbacks callbacks = {
        .write = memstream_write,
        .seek = memstream_seek,
        .close = memstream_close,
    };
    weir_stream *s = NULL;
    if (!data || !length)
        return weir__stdio_result(NULL, -EINVAL);
    struct memstream *memory = memstream_new(unit, data, length);
    if (!memory)
        return weir__stdio_result(NULL, -ENOMEM);
    int result = weir__stdio_open_callbacks(&s, &callbacks, memory, "w", WEIR_FORK_KEEP);
    if (result == 0)
        return s;
    free(memory->data);
    free(memory);
    return weir__stdio_result(NULL, result);
}

weir_stream *weir_stdio_open_memstream(char **data, size_t *bytes) { return open_memory(1, data, bytes); }

weir_stream *weir_stdio_open_wmemstream(wchar_t **data, size_t *length)
{
    weir_stream *s = open_memory(sizeof(wchar_t), data, length);
    if (s) {
        weir__config(s)->stdio_wide = 1;
        weir__config(s)->stdio_wide_memory = true;
    }
    return s;
}
