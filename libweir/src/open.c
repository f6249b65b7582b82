/* open.c: opens streams over descriptors. open_path.c opens files by their paths. */
#include "private.h"

#include <unistd.h>

static const struct weir_options defaults;

static int64_t flags_of(int fd) { return WEIR_CALL(weir__kernel.fcntl(fd, F_GETFL, NULL)); }

/* Finds the type of the file, which decides how it is buffered. */
static int inspect_fd(weir_stream *s, int fd, int oflags, int64_t *block_bytes)
{
    struct weir__config *config = weir__config(s);
    struct stat status;
    int result = (int)WEIR_CALL(weir__kernel.fstat(fd, &status));
    if (result < 0)
        return result;
    int access = oflags & O_ACCMODE;
    config->fd = fd;
    config->can_read = access != O_WRONLY;
    config->can_write = access != O_RDONLY;
    config->append = oflags & O_APPEND;
    config->regular = S_ISREG(status.st_mode);
    config->is_pipe = S_ISFIFO(status.st_mode);
    config->is_socket = S_ISSOCK(status.st_mode);
    config->terminal = S_ISCHR(status.st_mode) && isatty(fd);
    config->block_device = S_ISBLK(status.st_mode);
    config->seekable = config->regular || config->block_device;
    if (!config->seekable && S_ISCHR(status.st_mode) && !config->terminal)
        config->seekable = weir__kernel.lseek(fd, 0, SEEK_CUR) >= 0 && !config->can_write;
    *block_bytes = (int64_t)status.st_blksize;
    return 0;
}

static enum weir_mode resolve_mode(const weir_stream *s, enum weir_mode requested)
{
    const struct weir__config *config = weir__config(s);
    if (requested != WEIR_AUTO)
        return requested;
    if (config->fd == STDERR_FILENO)
        return WEIR_NONE;
    return config->terminal ? WEIR_LINE : WEIR_FULL;
}

static int choose_sink(weir_stream *s, const struct weir_options *options)
{
    struct weir__config *config = weir__config(s);
    if (options->flags & WEIR_DIRECT) {
        config->sink = &weir__sink_direct;
        return weir__direct_init(s);
    }
    if (options->flags & WEIR_URING) {
        if (!config->can_write || (config->can_read && config->seekable))
            return -EINVAL; /* for writing only; a socket may also be read */
        config->sink = &weir__sink_uring;
    }
    return 0;
}

static int init_stream(weir_stream *s, int fd, int oflags, const struct weir_options *options)
{
    struct weir__config *config = weir__config(s);
    int64_t block_bytes;
    int result = inspect_fd(s, fd, oflags, &block_bytes);
    if (result < 0)
        return result;
    if (config->can_read && config->durability == WEIR_KILL)
        return -EINVAL; /* the shared mapping has only a write buffer */
    if (config->durability >= WEIR_DATA && config->can_write && !config->regular && !config->block_device)
        return -EINVAL; /* only files and block devices can be synced */
    if (config->durability == WEIR_WHOLE && config->can_write && (result = weir__directory_is_known(s)) < 0)
        return result; /* else the sync of the first record would fail */
    config->mode = resolve_mode(s, options->mode);
    result = choose_sink(s, options);
    if (result == 0)
        result = weir__buffers_init(s, options, weir__default_bytes(s, block_bytes));
    if (result == 0 && options->flags & WEIR_URING)
        result = weir__uring_init(s, options);
    return result;
}

/* Frees a stream that was not activated, with all its parts. */
static void free_partial(weir_stream *s)
{
    struct weir__config *config = weir__config(s);
    if (config->uring)
        weir__uring_free(s);
    if (config->direct)
        weir__direct_free(s);
    if (config->spill)
        weir__spill_free(s, false);
    weir__free(s);
}

static int open_fd(weir_stream **s, int fd, int oflags, const char *path, const struct weir_options *options)
{
    weir_stream *new_stream;
    int result = weir__new(&new_stream, &weir__sink_fd, options);
    if (result < 0)
        return result;
    if (path && !(weir__config(new_stream)->path = strdup(path)))
        result = -ENOMEM;
    if (result == 0)
        result = init_stream(new_stream, fd, oflags, options);
    if (result == 0 && path && weir__truncates_late(oflags, options) && weir__config(new_stream)->regular)
        result = (int)WEIR_CALL(weir__kernel.ftruncate(fd, 0));
    if (result == 0)
        result = weir__activate(new_stream);
    if (result < 0) {
        free_partial(new_stream);
        return result;
    }
    if (path && weir__config(new_stream)->regular && !weir__config(new_stream)->append)
        weir__state(new_stream)->pos = 0; /* a new descriptor starts at position 0 */
    *s = new_stream;
    return 0;
}

/* A thread that is cancelled leaves no part of a stream. */
int weir__open_fd(weir_stream **s, int fd, int oflags, const char *path, const struct weir_options *options)
{
    int cancel = weir__cancel_off();
    int result = open_fd(s, fd, oflags, path, options);
    weir__cancel_restore(cancel);
    return result;
}

int weir_fdopen(weir_stream **s, int fd, const struct weir_options *options)
{
    *s = NULL;
    options = options ? options : &defaults;
    int result = weir__options_check(options);
    if (result < 0)
        return result;
    int64_t oflags = flags_of(fd);
    return oflags < 0 ? (int)oflags : weir__open_fd(s, fd, (int)oflags, NULL, options);
}

int weir__closed_stream(weir_stream **s, int fd, const struct weir_options *options)
{
    weir_stream *new_stream;
    *s = NULL;
    int result = weir__new(&new_stream, &weir__sink_fd, options);
    if (result < 0)
        return result;
    weir__config(new_stream)->fd = fd;
    weir__config(new_stream)->mode = WEIR_FULL;
    result = weir__activate(new_stream);
    if (result < 0) {
        free_partial(new_stream);
        return result;
    }
    *s = new_stream;
    return 0;
}
