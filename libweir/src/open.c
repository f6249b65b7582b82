/* open.c: streams over descriptors. */
#include "private.h"

#include <unistd.h>

static const struct weir_options defaults;

static int64_t flags_of(int fd) { return WEIR_CALL(weir__kernel.fcntl(fd, F_GETFL, NULL)); }

/* What the descriptor is decides how it is buffered. */
static int look_at(weir_stream *s, int fd, int oflags, int64_t *block_bytes)
{
    struct weir__own *own = weir__own(s);
    struct stat status;
    int result = (int)WEIR_CALL(weir__kernel.fstat(fd, &status));
    if (result < 0)
        return result;
    int access = oflags & O_ACCMODE;
    own->fd = fd;
    own->can_read = access != O_WRONLY;
    own->can_write = access != O_RDONLY;
    own->append = oflags & O_APPEND;
    own->regular = S_ISREG(status.st_mode);
    own->is_pipe = S_ISFIFO(status.st_mode);
    own->is_socket = S_ISSOCK(status.st_mode);
    own->terminal = S_ISCHR(status.st_mode) && isatty(fd);
    own->block = S_ISBLK(status.st_mode);
    own->seekable = own->regular || own->block;
    if (!own->seekable && S_ISCHR(status.st_mode) && !own->terminal)
        own->seekable = weir__kernel.lseek(fd, 0, SEEK_CUR) >= 0 && !own->can_write;
    *block_bytes = (int64_t)status.st_blksize;
    return 0;
}

static enum weir_mode mode_of(const weir_stream *s, enum weir_mode asked)
{
    const struct weir__own *own = weir__own(s);
    if (asked != WEIR_AUTO)
        return asked;
    if (own->fd == STDERR_FILENO)
        return WEIR_NONE;
    return own->terminal ? WEIR_LINE : WEIR_FULL;
}

static int choose_sink(weir_stream *s, const struct weir_options *options)
{
    struct weir__own *own = weir__own(s);
    if (options->flags & WEIR_DIRECT) {
        own->sink = &weir__sink_direct;
        return weir__direct_make(s);
    }
    if (options->flags & WEIR_URING) {
        if (!own->can_write || (own->can_read && own->seekable))
            return -EINVAL; /* it is for writing ahead; only a socket is read meanwhile */
        own->sink = &weir__sink_uring;
    }
    return 0;
}

static int fill_in(weir_stream *s, int fd, int oflags, const struct weir_options *options)
{
    struct weir__own *own = weir__own(s);
    int64_t block_bytes;
    int result = look_at(s, fd, oflags, &block_bytes);
    if (result < 0)
        return result;
    if (own->can_read && own->durability == WEIR_KILL)
        return -EINVAL; /* the shared mapping holds bytes to be written only */
    if (own->durability >= WEIR_DATA && own->can_write && !own->regular && !own->block)
        return -EINVAL; /* nothing else can be synced */
    own->mode = mode_of(s, options->mode);
    result = choose_sink(s, options);
    if (result == 0)
        result = weir__buffers_make(s, options, weir__default_bytes(s, block_bytes));
    if (result == 0 && options->flags & WEIR_URING)
        result = weir__uring_make(s, options);
    return result;
}

/* Whatever was made of it. */
static void give_up(weir_stream *s)
{
    struct weir__own *own = weir__own(s);
    if (own->uring)
        weir__uring_free(s);
    if (own->direct)
        weir__direct_free(s);
    if (own->spill)
        weir__spill_free(s, false);
    weir__free(s);
}

int weir__open_fd(weir_stream **s, int fd, int oflags, const char *path, const struct weir_options *options)
{
    weir_stream *made;
    int result = weir__new(&made, &weir__sink_fd, options);
    if (result < 0)
        return result;
    if (path && !(weir__own(made)->path = strdup(path)))
        result = -ENOMEM;
    if (result == 0)
        result = fill_in(made, fd, oflags, options);
    if (result == 0)
        result = weir__ready(made);
    if (result < 0) {
        give_up(made);
        return result;
    }
    if (path && weir__own(made)->regular && !weir__own(made)->append)
        weir__hot(made)->pos = 0; /* just opened */
    *s = made;
    return 0;
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

int weir_open(weir_stream **s, const char *path, int oflags, const struct weir_options *options)
{
    *s = NULL;
    options = options ? options : &defaults;
    int result = weir__options_check(options);
    if (result < 0)
        return result;
    int direct = options->flags & WEIR_DIRECT ? O_DIRECT : 0, fd;
    do
        fd = (int)WEIR_CALL(weir__kernel.open(path, oflags | direct | O_CLOEXEC, 0666));
    while (fd == -EINTR); /* a FIFO waits for its other end */
    if (fd < 0)
        return fd;
    result = weir__open_fd(s, fd, oflags, path, options);
    if (result < 0)
        weir__kernel.close(fd);
    return result;
}

int weir__closed_stream(weir_stream **s, int fd, const struct weir_options *options)
{
    weir_stream *made;
    *s = NULL;
    int result = weir__new(&made, &weir__sink_fd, options);
    if (result < 0)
        return result;
    weir__own(made)->fd = fd;
    weir__own(made)->mode = WEIR_FULL;
    result = weir__ready(made);
    if (result < 0) {
        give_up(made);
        return result;
    }
    *s = made;
    return 0;
}
