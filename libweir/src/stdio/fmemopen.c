/* fmemopen.c: memory of the caller as a file of fixed size, and what streams over callbacks share. */
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
        weir__own(*s)->append = mode.oflags & O_APPEND;
    return result;
}

int64_t weir__stdio_target(int64_t offset, int whence, int64_t here, int64_t end)
{
    int64_t base = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? here : end, target;
    if (__builtin_add_overflow(base, offset, &target) || target < 0)
        return -EINVAL;
    return target;
}

struct fixed {
    char *data;
    size_t room, end, here;
    bool ours, append;
};

static ssize_t fixed_read(void *context, void *to, size_t bytes)
{
    struct fixed *memory = context;
    size_t left = memory->here < memory->end ? memory->end - memory->here : 0;
    bytes = bytes < left ? bytes : left;
    memcpy(to, memory->data + memory->here, bytes);
    memory->here += bytes;
    return (ssize_t)bytes;
}

/* A NUL follows what was written if there is room; otherwise it takes the place of the last byte, unless
 * bytes are appended, as glibc has it. */
static void terminate(struct fixed *memory)
{
    if (memory->end < memory->room)
        memory->data[memory->end] = '\0';
    else if (!memory->append)
        memory->data[memory->room - 1] = '\0';
}

static ssize_t fixed_write(void *context, const void *from, size_t bytes)
{
    struct fixed *memory = context;
    if (memory->append)
        memory->here = memory->end;
    bool needs_nul = bytes == 0 || ((const char *)from)[bytes - 1] != '\0';
    if (bytes > memory->room - memory->here) {
        if (memory->here + needs_nul >= memory->room)
            return -ENOSPC;
        bytes = memory->room - memory->here;
    }
    memcpy(memory->data + memory->here, from, bytes);
    memory->here += bytes;
    if (memory->here > memory->end) {
        memory->end = memory->here;
        if (needs_nul)
            terminate(memory);
    }
    return (ssize_t)bytes;
}

static int64_t fixed_seek(void *context, int64_t offset, int whence)
{
    struct fixed *memory = context;
    int64_t target = weir__stdio_target(offset, whence, (int64_t)memory->here, (int64_t)memory->end);
    if (target > (int64_t)memory->room)
        return -EINVAL;
    if (target >= 0)
        memory->here = (size_t)target;
    return target;
}

static int fixed_close(void *context)
{
    struct fixed *memory = context;
    if (memory->ours)
        free(memory->data);
    free(memory);
    return 0;
}

static struct fixed *fixed_new(void *data, size_t bytes, const char *mode)
{
    char first = mode[0];
    struct fixed *memory = calloc(1, sizeof *memory);
    if (!memory)
        return NULL;
    *memory = (struct fixed){.data = data, .room = bytes, .ours = !data, .append = first == 'a'};
    if (!data && !(memory->data = calloc(1, bytes))) {
        free(memory);
        return NULL;
    }
    if (first == 'w' && strchr(mode, '+'))
        memory->data[0] = '\0';
    memory->end = first == 'r' ? bytes : first == 'w' ? 0 : strnlen(memory->data, bytes);
    memory->here = first == 'a' ? memory->end : 0;
    return memory;
}

weir_stream *weir_stdio_fmemopen(void *data, size_t bytes, const char *mode)
{
    static const struct weir_callbacks callbacks = {
        .read = fixed_read,
        .write = fixed_write,
        .seek = fixed_seek,
        .close = fixed_close,
    };
    weir_stream *s = NULL;
    if (bytes == 0)
        return weir__stdio_result(NULL, -EINVAL);
    struct fixed *memory = fixed_new(data, bytes, mode);
    if (!memory)
        return weir__stdio_result(NULL, -ENOMEM);
    int result = weir__stdio_open_callbacks(&s, &callbacks, memory, mode, WEIR_FORK_KEEP);
    if (result < 0)
        fixed_close(memory);
    return weir__stdio_result(s, result);
}
