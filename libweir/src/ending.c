/* ending.c: the end of the program, by exit(3) or exec(3). All streams are flushed, and then no other thread
 * is inside a call that writes when the kernel ends it.
 *
 * EXIT. weir__at_exit flushes every stream and makes it unbuffered: exit handlers that run later, and other
 * threads, may still write. exit_group(2) kills those threads at any instruction, also in the middle of a
 * write(2), which would tear a line. Therefore the last destructor takes the locks of all streams, and the
 * registry's, and keeps them: every other thread stops in its next call. The wait for each lock ends after
 * WEIR__LOCK_TIMEOUT_MS, because its owner may be blocked in a write without end.
 *
 * A destructor of another library may run later and wait for a thread that needs a stream. So that such a
 * program also ends, waiting threads release the locks after HOLD_MS (lock.c).
 *
 * EXEC. The same, except that the locks are released if the exec fails. */
#include "private.h"

#include <unistd.h>

enum { SLICE_MS = 5, HOLD_MS = 1000 };

/* Returns false in a child of vfork(2): the stream is its parent's. */
bool weir__belongs_to(const weir_stream *s, int pid)
{
    const struct weir__config *config = weir__config(s);
    return s->magic == WEIR_STREAM_MAGIC && (config->pid == pid || config->on_fork == WEIR_FORK_KEEP);
}

static bool has_pending(const weir_stream *s)
{
    return weir__pending(s) || weir__state(s)->record_bytes || weir__config(s)->uring;
}

/* A stream with nothing pending may still be in use: its owner may have drained the buffer in order to append
 * the rest of its bytes. Only an owner that is blocked in a read has left the stream in a state between two
 * calls. */
bool weir__lock_unless_reading(weir_stream *s, int64_t end_ms, bool despite_pending)
{
    struct weir__state *state = weir__state(s);
    if (weir__trylock(&state->lock))
        return true;
    while (!atomic_load(&state->in_read) || (!despite_pending && has_pending(s))) {
        int64_t left = end_ms - weir__now_ms();
        if (weir__timedlock(&state->lock, s, left < 0 ? 0 : left < SLICE_MS ? (unsigned)left : SLICE_MS))
            return true;
        if (left <= 0)
            return false;
    }
    return false;
}

bool weir__enter_for_flush(weir_stream *s)
{
    int64_t end = weir__now_ms() + WEIR__LOCK_TIMEOUT_MS;
    return !weir__config(s)->locking || weir__lock_unless_reading(s, end, false);
}

/* Flushes and seeks back over read-ahead bytes, as fclose(3), so that the next program continues at the
 * stream's position. Does not seek back for a forked child's copy: the parent would read bytes twice. */
static void flush_and_seek_back(weir_stream *s)
{
    struct weir__config *config = weir__config(s);
    bool is_copy = config->copied || config->pid != (int)getpid();
    int result = weir__flush_held(s);
    if (result == 0 && !is_copy && config->can_read && config->seekable && config->fd >= 0) {
        weir__seek_back(s);
        weir__discard_read(s);
    }
}

static void make_unbuffered(weir_stream *s)
{
    weir__config(s)->mode = WEIR_NONE;
    weir__set_limits(s);
}

void weir__opened_at_exit(weir_stream *s)
{
    weir__enter(s);
    make_unbuffered(s);
    weir__leave(s);
}

void weir__at_exit(void)
{
    weir_stream *s;
    int pid = (int)getpid();
    if (weir__globals->pid == pid) /* not in a child of vfork(2) */
        atomic_store(&weir__globals->exiting, true);
    for (size_t slot = 0; (s = weir__ref_next(&slot)) != NULL; weir__unref(s)) {
        if (!weir__belongs_to(s, pid) || !weir__enter_for_flush(s))
            continue;
        flush_and_seek_back(s);
        weir__remove_temporary(s);
        if (weir__config(s)->spill)
            weir__spill_exit(s);
        make_unbuffered(s);
        weir__leave(s);
    }
}

/* Runs after all other exit handlers and destructors of the program. Also flushes: a stream that weir__at_exit
 * could not lock may be free now. */
__attribute__((destructor(101))) static void hold_streams(void)
{
    struct weir__globals *globals = weir__globals;
    int pid = (int)getpid();
    if (!globals || globals->pid != pid || !atomic_load(&globals->exiting))
        return;
    weir_stream *s;
    int64_t end = weir__now_ms() + WEIR__LOCK_TIMEOUT_MS;
    for (size_t slot = 0; (s = weir__ref_next(&slot)) != NULL; weir__unref(s)) {
        const struct weir__config *config = weir__config(s);
        bool shared = config->locking && config->pid == pid && s->magic == WEIR_STREAM_MAGIC;
        if (shared && weir__lock_unless_reading(s, end, false))
            weir__flush_held(s);
    }
    weir__timedlock(&globals->registry, NULL, WEIR__LOCK_TIMEOUT_MS);
    globals->hold_end_ms = weir__now_ms() + HOLD_MS;
    atomic_store(&globals->holder, weir__this_thread());
}

/* A forked child's copy of a WEIR_FORK_KEEP stream is not flushed: the original is flushed by the parent. */
static bool is_flushed_at_exec(const weir_stream *s)
{
    int pid = (int)getpid();
    return weir__belongs_to(s, pid) && weir__config(s)->pid == pid && !weir__config(s)->copied;
}

void weir__before_exec(void)
{
    weir_stream *s;
    for (size_t slot = 0; (s = weir__ref_next(&slot)) != NULL; weir__unref(s)) {
        if (!is_flushed_at_exec(s) || !weir__enter_for_flush(s))
            continue;
        flush_and_seek_back(s);
        if (weir__config(s)->spill)
            weir__spill_exec(s);
    }
}

/* Keeps errno: it is the error of the exec. */
void weir__after_exec(void)
{
    weir_stream *s;
    int error = errno;
    for (size_t slot = 0; (s = weir__ref_next(&slot)) != NULL; weir__unref(s))
        if (is_flushed_at_exec(s) && atomic_load(&weir__state(s)->lock.owner) == weir__this_thread())
            weir__leave(s);
    errno = error;
}
