/* fseek.c: positions. */
#include "stdio_private.h"

/* Seeks in a device that libweir does not treat as seekable, because its reads and writes are unrelated:
 * lseek(2) decides, as for /dev/null. */
static int64_t seek_device(weir_stream *s, int64_t offset, int whence)
{
    struct weir__config *config = weir__config(s);
    int result = config->fd < 0 ? -ESPIPE : weir__flush_held(s);
    if (result < 0)
        return result;
    if (whence == SEEK_CUR)
        offset -= (int64_t)weir__unread(s);
    int64_t position = WEIR_CALL(weir__kernel.lseek(config->fd, offset, whence));
    if (position >= 0) {
        weir__discard_read(s);
        weir__state(s)->eof = false;
    }
    return position;
}

static int64_t tell_device(weir_stream *s)
{
    struct weir__config *config = weir__config(s);
    int64_t position = config->fd < 0 ? -ESPIPE : WEIR_CALL(weir__kernel.lseek(config->fd, 0, SEEK_CUR));
    if (position < 0)
        return position;
    position += (int64_t)weir__pending(s) - (int64_t)weir__unread(s);
    return position < 0 ? 0 : position;
}

/* The program may have moved the descriptor itself: after fopen(3), fflush(3), and whenever nothing is buffered. */
static void forget_position(weir_stream *s)
{
    if (weir__unread(s) == 0 && weir__pending(s) == 0)
        weir__state(s)->pos = -1;
}

/* Returns the bytes of a character, in which positions are counted. */
static int64_t unit_of(const weir_stream *s)
{
    return weir__config(s)->stdio_wide_memory ? (int64_t)sizeof(wchar_t) : 1;
}

static int seek_held(weir_stream *s, int64_t offset, int whence)
{
    weir__stdio_take_errors(s);
    forget_position(s);
    int64_t position = weir_seek(s, offset, whence);
    if (position == -ESPIPE && !weir__config(s)->seekable)
        position = seek_device(s, offset, whence);
    if (position >= 0)
        return 0;
    errno = (int)-position;
    return -1;
}

int weir_stdio_fseeko(weir_stream *s, off_t offset, int whence)
{
    if (whence != SEEK_SET && whence != SEEK_CUR && whence != SEEK_END) {
        errno = EINVAL;
        return -1;
    }
    weir__enter(s);
    int result = seek_held(s, offset * unit_of(s), whence);
    weir__leave(s);
    return result;
}

off_t weir_stdio_ftello(weir_stream *s)
{
    weir__enter(s);
    forget_position(s);
    int64_t position = weir_tell(s);
    if (position == -ESPIPE && !weir__config(s)->seekable)
        position = tell_device(s);
    position = position < 0 ? position : position / unit_of(s);
    weir__leave(s);
    if (position >= 0)
        return (off_t)position;
    errno = (int)-position;
    return -1;
}

int weir_stdio_fseek(weir_stream *s, long offset, int whence) { return weir_stdio_fseeko(s, offset, whence); }
long weir_stdio_ftell(weir_stream *s) { return (long)weir_stdio_ftello(s); }

void weir_stdio_rewind(weir_stream *s)
{
    weir__enter(s);
    seek_held(s, 0, SEEK_SET);
    weir__stdio_take_errors(s);
    weir__config(s)->stdio_failed = false;
    weir__leave(s);
}

/* Stores the offset in the C library's fpos_t. */
_Static_assert(sizeof(fpos_t) >= sizeof(off_t), "a position fits fpos_t");

int weir_stdio_fgetpos(weir_stream *s, fpos_t *position)
{
    off_t offset = weir_stdio_ftello(s);
    if (offset < 0)
        return -1;
    memset(position, 0, sizeof *position);
    memcpy(position, &offset, sizeof offset);
    return 0;
}

int weir_stdio_fsetpos(weir_stream *s, const fpos_t *position)
{
    off_t offset;
    memcpy(&offset, position, sizeof offset);
    return weir_stdio_fseeko(s, offset, SEEK_SET);
}
