/* seek.c: positions. A stream's position is the descriptor's, plus pending bytes, minus unread bytes. */
#include "private.h"

static int64_t sink_seek(weir_stream *s, int64_t offset, int whence)
{
    struct weir__state *state = weir__state(s);
    if (!weir__config(s)->sink->seek)
        return -ESPIPE;
    state->stats.seeks++;
    int64_t pos = weir__config(s)->sink->seek(s, offset, whence);
    state->pos = pos < 0 || weir__config(s)->share ? -1 : pos;
    return pos;
}

/* Returns the descriptor's position. The cached value is not used if the descriptor is shared: others move
 * it. */
int64_t weir__kernel_pos(weir_stream *s)
{
    struct weir__state *state = weir__state(s);
    return state->pos >= 0 && !weir__config(s)->share ? state->pos : sink_seek(s, 0, SEEK_CUR);
}

/* Returns the end of the file: O_APPEND and WEIR_LOCK_FILE ignore the position. */
static int64_t append_pos(weir_stream *s)
{
    if (weir__config(s)->fd < 0)
        return sink_seek(s, 0, SEEK_END);
    struct stat status;
    int64_t result = WEIR_CALL(weir__kernel.fstat(weir__config(s)->fd, &status));
    return result < 0 ? result : (int64_t)status.st_size;
}

static int64_t tell_held(weir_stream *s)
{
    struct weir__config *config = weir__config(s);
    uint64_t pending = weir__pending(s) + weir__state(s)->record_bytes;
    if (!config->seekable)
        return -ESPIPE;
    if (config->uring &&
        config->append) /* a write in flight shows neither in the file's size nor in its position */
        pending += weir__uring_remaining(s, true);
    bool at_end = config->append || config->lock_file;
    int64_t pos = at_end && pending ? append_pos(s) : weir__kernel_pos(s);
    if (pos < 0)
        return pos;
    pos += (int64_t)pending - (int64_t)weir__unread(s);
    return pos < 0 ? 0 : pos;
}

int64_t weir_tell(weir_stream *s)
{
    weir__enter(s);
    int64_t result = tell_held(s);
    weir__leave(s);
    return result;
}

/* Moves within the read buffer, without a system call. Returns false if the target is outside. */
static bool within_buffer(weir_stream *s, int64_t target)
{
    struct weir__state *state = weir__state(s);
    uint64_t first = weir__read_start(s);
    if (state->pushed_back || state->pos < 0 || weir__config(s)->share || s->held_read_limit == first)
        return false;
    int64_t start = state->pos - (int64_t)(s->held_read_limit - first);
    if (target < start || target > state->pos || start < 0)
        return false;
    WEIR_STORE(&s->read, first + (uint64_t)(target - start));
    return true;
}

/* Returns whether a position is outside of the read-ahead bytes that the write before the seek has discarded. */
static bool is_out_of_discarded(const struct weir__state *state, int64_t pos)
{
    return state->discarded_upto && (pos < state->discarded_from || pos > state->discarded_upto);
}

/* Counts seeks out of the buffer: with random access read-ahead is useless. */
static void count_far_seek(weir_stream *s)
{
    struct weir__state *state = weir__state(s);
    if (weir__config(s)->access == WEIR_ACCESS_AUTO && ++state->far_seeks == 3)
        state->advised = false;
}

static int64_t seek_held(weir_stream *s, int64_t offset, int whence)
{
    struct weir__config *config = weir__config(s);
    struct weir__state *state = weir__state(s);
    if (!config->seekable)
        return -ESPIPE;
    if (whence == SEEK_CUR) {
        int64_t here = tell_held(s);
        if (here < 0)
            return here;
        if (__builtin_add_overflow(here, offset, &offset))
            return -EOVERFLOW;
        whence = SEEK_SET;
    }
    if (whence == SEEK_SET && offset < 0)
        return -EINVAL;
    if (config->can_write && (weir__pending(s) || state->record_bytes)) {
        int result = weir__flush_held(s);
        if (result < 0)
            return result;
    }
    if (whence == SEEK_SET && within_buffer(s, offset)) {
        state->eof = false;
        state->read_error = 0;
        return offset;
    }
    bool had_read = s->held_read_limit > weir__read_start(s);
    int64_t pos = sink_seek(s, offset, whence);
    if (pos < 0)
        return pos;
    if (had_read || is_out_of_discarded(state, pos))
        count_far_seek(s);
    state->discarded_from = state->discarded_upto = 0;
    weir__discard_read(s);
    state->eof = false;
    state->read_error = 0;
    return pos;
}

int64_t weir_seek(weir_stream *s, int64_t offset, int whence)
{
    weir__enter(s);
    int64_t result = seek_held(s, offset, whence);
    weir__leave(s);
    return result;
}
