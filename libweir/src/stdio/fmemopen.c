/* fmemopen.c: streams over memory of a fixed size, and helpers for streams over callbacks. */
#include "stdio_private.h"

enum { SMALL_BUFFER = 4096 };

int weir__stdio_open_callbacks(weir_stream **s, const struct weir_callbacks *callbacks, void *context,
                               const char *string, enum weir_on_fork on_fork)
{
    struct weir__stdio_mode mode;
    int result = weir__stdio_parse_mode(&mode, string);
    if (result < 0)
        return result;
    struct weir_callbacks allowed = *callbacks;
    allowed.read = mode.reads ? allowed.read : NULL;
    allowed.write = mode.writes ? allowed.write : NULL;
    struct weir_options options = weir__stdio_options(&mode);
    options.on_fork = on_fork;
    options.buffer_bytes = SMALL_BUFFER;
    result = weir_open_callbacks(s, &allowed, context, &options);
    if (result == 0)
        weir__config(*s)->append = mode.oflags & O_APPEND;
    return result;
}

int64_t weir__stdio_seek_target(int64_t offset, int whence, int64_t position, int64_t end)
{
    int64_t base = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? position : end, target;
    if (__builtin_add_overflow(base, offset, &target) || target < 0)
        return -EINVAL;
    return target;
}

struct memory_file {
    char *data;
    size_t room, end, position;
    bool owned, append;
};

static ssize_t memory_file_read(void *context, void *to, size_t bytes)
{
    struct memory_file *memory = context;
    size_t left = memory->position < memory->end ? memory->end - memory->position : 0;
    bytes = bytes < left ? bytes : left;
    memcpy(to, memory->data + memory->position, bytes);
    memory->position += bytes;
    return (ssize_t)bytes;
}

/* Writes a NUL behind the data if there is room; otherwise replaces the last byte, except in append mode,
 * as glibc does. */
static void terminate(struct memory_file *memory)
{
    if (memory->end < memory->room)
        memory->data[memory->end] = '\0';
    else if (!memory->append)
        memory->data[memory->room - 1] = '\0';
}

static ssize_t memory_file_write(void *context, const void *from, size_t bytes)
{
    struct memory_file *memory = context;
    if (memory->append)
        memory->position = memory->end;
    bool needs_nul = bytes == 0 || ((const char *)from)[bytes - 1] != '\0';
    if (bytes > memory->room - memory->position) {
        if (memory->position + needs_nul >= memory->room)
            return -ENOSPC;
        bytes = memory->room - memory->position;
    }
    memcpy(memory->data + memory->position, from, bytes);
    memory->position += bytes;
    if (memory->position > memory->end) {
        memory->end = memory->position;
        if (needs_nul)
            terminate(memory);
    }
    return (ssize_t)bytes;
}

static int64_t memory_file_seek(void *context, int64_t offset, int whence)
{
    struct memory_file *memory = context;
    int64_t target = weir__stdio_seek_target(offset, whence, (int64_t)memory->position, (int64_t)memory->end);
    if (target > (int64_t)memory->room)
        return -EINVAL;
    if (target >= 0)
        memory->position = (size_t)target;
    return target;
}

static int memory_file_close(void *context)
{
    struct memory_file *memory = context;
    if (memory->owned)
        free(memory->data);
    free(memory);
    return 0;
}

static struct memory_file *memory_file_new(void *data, size_t bytes, const char *mode)
{
    char first = mode[0];
    struct memory_file *memory = calloc(1, sizeof *memory);
    if (!memory)
        return NULL;
    *memory = (struct memory_file){.data = data, .room = bytes, .owned = !data, .append = first == 'a'};
    if (!data && !(memory->data = calloc(1, bytes + !bytes))) {
        free(memory);
        return NULL;
    }
    if (first == 'w' && strchr(mode, '+') && bytes > 0)
        memory->data[0] = '\0';
    memory->end = first == 'r' ? bytes : first == 'w' ? 0 : strnlen(memory->data, bytes);
    memory->position = first == 'a' ? memory->end : 0;
    return memory;
}

weir_stream *weir_stdio_fmemopen(void *data, size_t bytes, const char *mode)
{
    static const struct weir_callbacks callbacks = {
        .read = memory_file_read,
        .write = memory_file_write,
        .seek = memory_file_seek,
        .close = memory_file_close,
    };
    weir_stream *s = NULL;
    struct memory_file *memory = memory_file_new(data, bytes, mode);
    if (!memory)
        return weir__stdio_result(NULL, -ENOMEM);
    int result = weir__stdio_open_callbacks(&s, &callbacks, memory, mode, WEIR_FORK_KEEP);
    if (result < 0)
        memory_file_close(memory);
    return weir__stdio_result(s, result);
}
