/* sink_callbacks.c: streams over callbacks of the program. */
#include "private.h"

/* Passes one entry per call; the write loop repeats. */
static ssize_t callbacks_write(weir_stream *s, const struct iovec *iov, int count)
{
    (void)count;
    struct weir__config *config = weir__config(s);
    ssize_t written = config->callbacks.write(config->context, iov->iov_base, iov->iov_len);
    return written > (ssize_t)iov->iov_len ? -EINVAL : written;
}

static ssize_t callbacks_read(weir_stream *s, void *to, size_t bytes)
{
    struct weir__config *config = weir__config(s);
    ssize_t got = config->callbacks.read(config->context, to, bytes);
    return got > (ssize_t)bytes ? -EINVAL : got;
}

static int64_t callbacks_seek(weir_stream *s, int64_t offset, int whence)
{
    struct weir__config *config = weir__config(s);
    return config->callbacks.seek ? config->callbacks.seek(config->context, offset, whence) : -ESPIPE;
}

static int callbacks_sync(weir_stream *s, enum weir_durability level)
{
    struct weir__config *config = weir__config(s);
    return config->callbacks.sync ? config->callbacks.sync(config->context, level) : -EINVAL;
}

static int callbacks_close(weir_stream *s)
{
    struct weir__config *config = weir__config(s);
    return config->callbacks.close ? config->callbacks.close(config->context) : 0;
}

const struct weir__sink weir__sink_callbacks = {
    .write = callbacks_write,
    .read = callbacks_read,
    .seek = callbacks_seek,
    .sync = callbacks_sync,
    .close = callbacks_close,
};

static int init_stream(weir_stream *s, const struct weir_callbacks *callbacks, void *context,
                       const struct weir_options *options)
{
    struct weir__config *config = weir__config(s);
    config->callbacks = *callbacks;
    config->context = context;
    config->can_read = callbacks->read != NULL;
    config->can_write = callbacks->write != NULL;
    config->seekable = callbacks->seek != NULL;
    config->mode = options->mode == WEIR_AUTO ? WEIR_FULL : options->mode;
    return weir__buffers_init(s, options, weir__default_bytes(s, 0));
}

int weir_open_callbacks(weir_stream **s, const struct weir_callbacks *callbacks, void *context,
                        const struct weir_options *options)
{
    static const struct weir_options defaults;
    options = options ? options : &defaults;
    weir_stream *new_stream;
    *s = NULL;
    int result = weir__options_check(options);
    if (result == 0 && options->flags & (WEIR_DIRECT | WEIR_URING | WEIR_LOCK_FILE))
        result = -EINVAL; /* these flags apply to descriptors */
    if (result == 0 && options->durability >= WEIR_DATA && !callbacks->sync)
        result = -EINVAL;
    if (result == 0 && options->durability == WEIR_KILL)
        result = -EINVAL; /* the callbacks do not exist after a kill */
    if (result == 0)
        result = weir__new(&new_stream, &weir__sink_callbacks, options);
    if (result < 0)
        return result;
    result = init_stream(new_stream, callbacks, context, options);
    if (result == 0)
        result = weir__activate(new_stream);
    if (result < 0)
        weir__free(new_stream);
    else
        *s = new_stream;
    return result;
}
