/* ending.c: flushes all streams at exit(3) and exec(3), and locks them, so that the kernel kills no other thread in
 * the middle of a write. weir_flush_all and the hook of fork(2) flush streams of other threads by the same functions.
 *
 * EXIT. weir__at_exit flushes every stream and makes it unbuffered: exit handlers that run later, and other
 * threads, may still write. exit_group(2) kills those threads at any instruction, also in the middle of a
 * write(2), which would tear a line. Therefore hold_streams, a destructor that runs late, takes the locks of all
 * streams, and the registry's, and keeps them: every other thread stops in its next call. The wait for a lock ends
 * if its owner sleeps for WEIR__LOCK_TIMEOUT_MS, because it may be blocked in a write without end; see owner_wait.c.
 *
 * A destructor of another library may run later and wait for a thread that needs a stream. So that such a
 * program also ends, waiting threads release the locks after HOLD_MS, if the exiting thread sleeps (lock.c).
 *
 * EXEC. The streams are flushed and their locks kept; if the exec fails, the locks are released. Streams stay
 * buffered, and the registry is not locked. execve(2) may be called in a signal handler: a stream whose write the handler
 * has interrupted is left alone (weir__is_writing). DAEMON: the streams are flushed, because daemon(3) ends the process by
 * _exit(2) and continues in a child.
 *
 * A NON-BLOCKING DESCRIPTOR may have no room for all bytes. They would be lost without an error that a function
 * returns; therefore the flush waits for the reader (flush_despite_full_pipe).
 *
 * CANCELLATION is off in these functions: they hold locks and references while they wait.
 *
 * A STREAM OF ONE THREAD has no lock; it gets one when another thread flushes it (enter_unshared). Its own
 * thread may still be in an inline call, which does not lock: the stream is flushed without a reset of its
 * offsets, and read-ahead bytes that another thread may be reading are not given back. A stream whose thread is between
 * weir_reserve and weir_commit is flushed without a reset too: the reserved room stays. */
#include "private.h"

#include <unistd.h>

enum {
    HOLD_MS = 1000,
    MAX_HOLD_MS = 30000,
    MIN_MS = 20,
    /* As MAX_MS of owner_wait.c, for a thread that proceeds: a peer that does not read for some seconds loses nothing. */
    READER_MS = 30000,
};

/* Returns false if the stream is another process's, as in a child of vfork(2), or was wiped by fork(2). A WEIR_FORK_KEEP
 * stream belongs to all processes that have it. */
bool weir__belongs_to(const weir_stream *s, int pid)
{
    const struct weir__config *config = weir__config(s);
    return s->magic == WEIR_STREAM_MAGIC && (config->pid == pid || config->on_fork == WEIR_FORK_KEEP);
}

/* As weir__belongs_to, but a WEIR_FORK_KEEP stream belongs only to the process that opened it. */
static bool belongs_to_process(const weir_stream *s, int pid)
{
    return weir__belongs_to(s, pid) && weir__config(s)->pid == pid;
}

static bool has_pending(const weir_stream *s)
{
    return weir__pending(s) || weir__state(s)->record_bytes || weir__config(s)->uring;
}

/* Returns whether a locked stream needs no flush: its owner is blocked in a read, and nothing is pending, or that does not
 * matter. Another stream with nothing pending may be in use: its owner may have drained the buffer in order to append the rest
 * of its bytes. Only an owner that is blocked in a read has left the stream in a state between two calls. */
static bool can_be_left_locked(const weir_stream *s, bool despite_pending)
{
    return atomic_load(&weir__state(s)->in_read) && (despite_pending || !has_pending(s));
}

bool weir__lock_unless_reading(weir_stream *s, struct weir__owner_wait *w, bool despite_pending)
{
    struct weir__state *state = weir__state(s);
    bool acquired = weir__trylock(&state->lock);
    while (!acquired && !can_be_left_locked(s, despite_pending)) {
        acquired = weir__timedlock(&state->lock, s, WEIR__SLICE_MS);
        if (!acquired && !weir__may_wait_on(w, atomic_load(&state->lock.owner)))
            break;
    }
    weir__note_wait(0);
    return acquired;
}

bool weir__is_writing(const weir_stream *s)
{
    uintptr_t writer = atomic_load_explicit(&weir__state(s)->writer, memory_order_relaxed);
    return writer && writer == weir__this_thread();
}

/* Locks a stream that only its own thread uses. That thread's calls begun before the membarrier are counted in
 * in_call; later ones see `locking`. While in_read is set, the thread is blocked in a read, and waits for the lock
 * before it goes on (end_read in fill.c). */
static bool enter_unshared(weir_stream *s, struct weir__owner_wait *w)
{
    struct weir__state *state = weir__state(s);
    struct timespec wait = {0, 200000};
    weir__set_locking(s);
    if (!weir__lock_unless_reading(s, w, false))
        return false;
    for (;;) {
        weir__membarrier_all();
        if (!atomic_load(&state->in_call) || atomic_load(&state->in_read))
            return true;
        if (!weir__may_wait_on(w, atomic_load(&state->writer)))
            break;
        nanosleep(&wait, NULL);
    }
    weir__unlock(&state->lock);
    return false;
}

bool weir__enter_for_flush(weir_stream *s, struct weir__owner_wait *w)
{
    int64_t least = weir__now_ms() + MIN_MS;
    w->end_ms = w->end_ms > least ? w->end_ms : least;
    if (weir__config(s)->threads)
        return weir__lock_unless_reading(s, w, false);
    if (!weir__one_thread())
        return enter_unshared(s, w);
    weir__enter(s);
    return true;
}

/* Releases what weir__enter_for_flush took. A lock is released directly, because the stream's own thread may be in a
 * call, blocked in a read. */
void weir__leave_after_flush(weir_stream *s)
{
    if (!weir__config(s)->threads && weir__one_thread())
        weir__leave(s);
    else
        weir__unlock(&weir__state(s)->lock);
}

/* Returns whether another thread may be in an inline call. */
static bool has_inline_calls(const weir_stream *s) { return !weir__config(s)->threads && !weir__one_thread(); }

/* Returns whether another thread reads the stream and relies on its read buffer. */
static bool is_read_elsewhere(const weir_stream *s)
{
    const struct weir__state *state = weir__state(s);
    uintptr_t reader = atomic_load(&state->reader);
    return has_inline_calls(s) && (atomic_load(&state->in_read) || (reader && reader != weir__this_thread()));
}

int weir__flush_in_place(weir_stream *s)
{
    struct weir__config *config = weir__config(s);
    size_t written = 0;
    if (!has_inline_calls(s) && !weir__has_reservation(s))
        return weir__flush_held(s);
    int result = weir__publish_begun(s);
    if (result == 0 && config->can_write && config->sink->write) {
        /* acquire: the bytes below the offset are visible */
        uint64_t upto = __atomic_load_n(&weir__head(s)->written, __ATOMIC_ACQUIRE) - weir__head(s)->base;
        result = weir__write_out(s, upto, NULL, 0, &written);
        if (result == 0 && config->sink->finish)
            result = config->sink->finish(s);
    }
    if (result == 0 && config->share && config->can_read && !is_read_elsewhere(s)) {
        result = weir__seek_back(s);
        if (result == 0 && config->seekable)
            weir__discard_read(s);
    }
    return result;
}

/* Waits until the descriptor accepts bytes, at the longest until `end_ms` of weir__now_ms. `again`: the descriptor was reported as
 * ready before, and the write still failed with EAGAIN. Returns false at the end of the time. */
static bool wait_for_reader(const weir_stream *s, int64_t end_ms, bool again)
{
    struct pollfd reader = {.fd = weir__config(s)->fd, .events = POLLOUT};
    struct timespec moment = {0, 1000000};
    int64_t left = end_ms - weir__now_ms();
    if (reader.fd < 0 || left <= 0)
        return false;
    if (again) /* a descriptor that poll(2) reports as ready nevertheless */
        nanosleep(&moment, NULL);
    int ready = weir__kernel.poll(&reader, 1, (int)left);
    return ready > 0 || (ready < 0 && errno == EINTR);
}

/* As weir__flush_in_place. Waits for the peer of a non-blocking descriptor until it has read nothing for READER_MS. */
static int flush_despite_full_pipe(weir_stream *s)
{
    const struct weir_stats *stats = &weir__state(s)->stats;
    int64_t end_ms = 0;
    for (bool again = false;; again = true) {
        uint64_t before = stats->written_bytes;
        int result = weir__flush_in_place(s);
        bool proceeds = stats->written_bytes != before || !again;
        if (proceeds)
            end_ms = weir__now_ms() + READER_MS;
        if (result != -EAGAIN || !wait_for_reader(s, end_ms, !proceeds))
            return result;
    }
}

/* Flushes and seeks back over read-ahead bytes, as fclose(3), so that the next program continues at the
 * stream's position. Does not seek back for a forked child's copy: the parent would read bytes twice. */
static void flush_and_seek_back(weir_stream *s, int (*flush)(weir_stream *s))
{
    struct weir__config *config = weir__config(s);
    bool is_copy = config->copied || config->pid != (int)getpid();
    int result = flush(s);
    if (result == 0 && !is_copy && config->can_read && config->seekable && config->fd >= 0 && !is_read_elsewhere(s)) {
        weir__seek_back(s);
        weir__discard_read(s);
    }
}

static void flush_for_next_program(weir_stream *s, int (*flush)(weir_stream *s))
{
    flush_and_seek_back(s, flush);
    if (weir__config(s)->direct)
        weir__direct_lend(s, true);
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
    int pid = (int)getpid(), cancel = weir__cancel_off();
    if (weir__globals->pid == pid) /* not in a child of vfork(2) */
        atomic_store(&weir__globals->exiting, true);
    struct weir__owner_wait owner_wait;
    weir__owner_wait_begin(&owner_wait);
    for (size_t slot = 0; (s = weir__ref_next(&slot)) != NULL; weir__unref(s)) {
        if (!weir__belongs_to(s, pid) || !weir__enter_for_flush(s, &owner_wait))
            continue;
        flush_for_next_program(s, flush_despite_full_pipe);
        weir__remove_temporary(s);
        if (weir__config(s)->spill)
            weir__spill_exit(s);
        make_unbuffered(s);
        if (has_inline_calls(s))
            weir__flush_in_place(s); /* bytes that inline calls appended before they saw the new limit */
        weir__leave_after_flush(s);
    }
    weir__cancel_restore(cancel);
}

/* Runs as the last destructor of this library, after the program's exit handlers. Also flushes: a stream that
 * weir__at_exit could not lock may be free now, and other threads may have read ahead since. */
__attribute__((destructor(101))) static void hold_streams(void)
{
    struct weir__globals *globals = weir__globals;
    int pid = (int)getpid();
    if (!globals || globals->pid != pid || !atomic_load(&globals->exiting))
        return;
    weir_stream *s;
    struct weir__owner_wait owner_wait;
    weir__cancel_off(); /* until the end of the process */
    weir__end_fork();
    weir__owner_wait_begin(&owner_wait);
    for (size_t slot = 0; (s = weir__ref_next(&slot)) != NULL; weir__unref(s)) {
        bool locks = weir__locking(s) || !weir__one_thread();
        if (belongs_to_process(s, pid) && locks && weir__enter_for_flush(s, &owner_wait))
            flush_for_next_program(s, weir__flush_in_place); /* weir__at_exit has waited for the reader */
    }
    weir__owner_wait_begin(&owner_wait);
    weir__lock_or_give_up(&globals->registry, &owner_wait);
    weir__note_thread();
    globals->hold_end_ms = weir__now_ms() + HOLD_MS;
    globals->hold_last_ms = weir__now_ms() + MAX_HOLD_MS;
    atomic_store(&globals->holder, weir__this_thread());
}

/* Drops the bytes that a forked child's copy of a WEIR_FORK_KEEP stream has inherited: the parent writes them. Returns
 * false, and drops nothing, if the child has added none. */
static bool drop_inherited(weir_stream *s)
{
    struct weir__state *state = weir__state(s);
    uint64_t written = state->stats.written_bytes;
    uint64_t inherited = state->inherited > written ? state->inherited - written : 0;
    if (!weir__config(s)->sink->write || weir__publish_begun(s) < 0 || weir__pending(s) <= inherited)
        return false;
    WEIR_PUBLISH(&weir__head(s)->drained, weir__drained(s) + inherited);
    state->inherited = 0;
    return true;
}

void weir__before_exec(void)
{
    weir_stream *s;
    int cancel = weir__cancel_off();
    struct weir__owner_wait owner_wait;
    weir__owner_wait_begin(&owner_wait);
    for (size_t slot = 0; (s = weir__ref_next(&slot)) != NULL; weir__unref(s)) {
        if (!belongs_to_process(s, (int)getpid()) || weir__is_writing(s) || !weir__enter_for_flush(s, &owner_wait))
            continue;
        if (!weir__config(s)->copied || drop_inherited(s))
            flush_for_next_program(s, flush_despite_full_pipe);
        if (weir__config(s)->spill)
            weir__spill_exec(s);
    }
    weir__cancel_restore(cancel);
}

/* Keeps errno: it is the error of the exec. */
void weir__after_exec(void)
{
    weir_stream *s;
    int error = errno;
    for (size_t slot = 0; (s = weir__ref_next(&slot)) != NULL; weir__unref(s)) {
        bool without_lock = weir__one_thread() && !weir__locking(s);
        bool entered = without_lock || atomic_load(&weir__state(s)->lock.owner) == weir__this_thread();
        if (!belongs_to_process(s, (int)getpid()) || weir__is_writing(s) || !entered)
            continue;
        if (weir__config(s)->direct)
            weir__direct_lend(s, false);
        weir__leave_after_flush(s);
    }
    errno = error;
}

void weir__before_daemon(void)
{
    weir_stream *s;
    int pid = (int)getpid(), cancel = weir__cancel_off();
    struct weir__owner_wait owner_wait;
    weir__owner_wait_begin(&owner_wait);
    for (size_t slot = 0; (s = weir__ref_next(&slot)) != NULL; weir__unref(s)) {
        if (!weir__belongs_to(s, pid) || !weir__enter_for_flush(s, &owner_wait))
            continue;
        flush_and_seek_back(s, flush_despite_full_pipe);
        if (weir__config(s)->spill)
            weir__spill_exec(s); /* the parent ends without exit(3), which would remove the file */
        weir__leave_after_flush(s);
    }
    weir__cancel_restore(cancel);
}
