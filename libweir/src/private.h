/* private.h: the invariants and the structures of a stream. Every file of src/ relies on them.
 * The functions that these files share are declared in internal.h.
 *
 * MEMORY. A stream is one mapping of two parts. The first page holds struct weir__state: offsets, limits, the
 * lock, errors. The kernel zeroes this page in a forked child (MADV_WIPEONFORK). The following pages hold
 * struct weir__config: the sink, the descriptor, the options, the addresses of the buffers. A child inherits a
 * copy of them. The buffers are separate mappings or the caller's memory; only weir__buffers_*, weir__spill_*
 * and weir__uring_swap change their addresses.
 *
 * THE PUBLISHED OFFSET. head->written is stored with release order after the bytes below it are stored. Its
 * value is head->base + the offset. In a private head, base is the buffer's address, which saves weir_putc one
 * load; in a shared mapping base is 0. The limits use the same unit. In this text and in weir__written,
 * `written` is the offset alone. `read` and its limits are addresses in every stream.
 * The bytes [drained, written) are complete and pending. The owner, the delay timer, weir_recover and
 * processes that inspect the stream from outside all read these two numbers. In WEIR_RECORD mode the
 * state->record_bytes bytes above `written` belong to a record that is not complete yet.
 *
 * STORES. Only the owner changes `written`: it publishes bytes, weir__reset sets it to 0, and weir_set_mode takes an
 * incomplete record back if the write that the new mode requires has failed and written no part of it. weir__write_out
 * advances `drained`, and lowers it if it takes back what it wrote (file_lock.c). __fpurge(3), and an exec after a fork
 * (ending.c), also advance it, over bytes that are discarded. weir__reset requires drained == written, so a published byte
 * never moves. It stores written = 0 before drained = 0: a reader between the two stores sees written < drained, which
 * means an empty buffer. The delay timer never resets.
 *
 * A WEIR_KILL stream has its head and buffer in a shared mapping. The head inside weir_stream and the limits
 * stay 0, so every call takes the slow path, which finds the shared head through struct weir__config.
 *
 * LIMITS. The inline calls compare the offset with `limit` (the caller does not hold the lock) or `held_limit`
 * (the caller holds it), and with nothing else. A limit of 0 sends every call to the slow path. The reasons
 * for it: unbuffered, line and record mode, durability for each record, an error, reading, a delay timer that
 * is not armed. Only weir__set_limits stores the limits; it computes them from the state and the
 * configuration. After a change of either, the code calls weir__set_limits, with the stream's lock held if
 * another thread can use the stream. An inline call that loaded the old limit may publish a byte after the
 * change. The delay timer therefore checks the stream again later (stale.c). All other changes are made by
 * calls of the owner itself. A line-buffered stream has state->line_limit instead, for the functions of stdio/.
 *
 * LOCKS. A stream's lock is taken before the registry's lock: a program may open a stream between weir_lock and
 * weir_unlock. A thread that holds the registry's lock does not wait for a stream's. If config->locking is set
 * (threads share the stream, or it has a delay), weir__enter locks the stream in every public call. A thread may
 * hold a stream's lock during a blocking system call, but never the registry's lock. The suffix _held marks functions whose
 * caller holds the stream's lock, or is the only user of a stream without a lock.
 *
 * A stream that only its own thread uses has no lock, but exit, exec, fork and weir_flush_all in another
 * thread flush it. Its calls are therefore counted in `in_call`. The other thread sets `locking`, for good,
 * issues a membarrier(2), and waits until no call is running: every later call takes the lock (ending.c).
 *
 * FORK. In the child the state page is all zero: magic 0, limits 0, nothing pending, lock free. Every public
 * call begins with weir__enter, which detects magic 0 and initializes the state again from the configuration
 * (weir__reinit). This needs no fork handler, so it also works after clone(2). With vfork(2) and CLONE_VM the
 * memory is shared and there is only one stream; exit and exec flush it only if config->pid == getpid().
 * WEIR_FORK_KEEP streams are not wiped. The mapping of a WEIR_KILL stream is MADV_DONTFORK; the child creates
 * its own when it appends its first byte.
 *
 * RECOVERY. A kill between a write and the update of `drained` leaves bytes that are in the file and in the
 * buffer. spill.h says for each kind of sink whether weir_recover can tell.
 *
 * CANCELLATION (pthread_cancel). A thread that is cancelled inside a call would never release the lock, and the
 * stream would not know how much of a write was done. Cancellation is therefore off around writes, syncs and
 * closing. A read that may block without end can be cancelled: fill.c then releases the lock.
 *
 * SYSTEM CALLS go through the table weir__kernel (kernel.h), so that tests can make each of them fail. */
#ifndef WEIR_PRIVATE_H
#define WEIR_PRIVATE_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#if defined( \
    __GNUC__) /* the library is compiled with hidden visibility; the functions of weir.h are exported */
#pragma GCC visibility push(default)
#endif
#include "../include/weir.h"
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#include "group_commit.h"
#include "kernel.h"
#include "lock.h"

#if defined(__GNUC__)
#define WEIR_COLD __attribute__((cold, noinline))
#define WEIR_NOINLINE \
    __attribute__((noinline)) /* a tail call to such a function saves no registers before it */
#else
#define WEIR_COLD
#define WEIR_NOINLINE
#endif

struct weir__spill;  /* spill.h: the shared mapping of a WEIR_KILL stream */
struct weir__direct; /* direct.h: a WEIR_DIRECT stream */
struct weir__uring;  /* sink_uring.c: a WEIR_URING stream */

/* The operations of a source or sink. `write` and `read` return a byte count or -errno; 0 from `read` is the
 * end of the input. Their callers handle short counts and -EINTR. A NULL member is an operation that the sink
 * does not have. */
struct weir__sink {
    ssize_t (*write)(weir_stream *s, const struct iovec *iov, int count);
    /* As `write`, for the delay timer: returns -EAGAIN if it would block. NULL: `write` does not block. */
    ssize_t (*write_now)(weir_stream *s, const struct iovec *iov, int count);
    ssize_t (*read)(weir_stream *s, void *to, size_t bytes);
    int64_t (*seek)(weir_stream *s, int64_t offset, int whence);
    int (*sync)(weir_stream *s, enum weir_durability level);
    int (*close)(weir_stream *s);
    /* Completes asynchronous writes. weir_flush and weir_close call it after the buffer is drained. */
    int (*finish)(weir_stream *s);
};

/* The layout of the private structures. weir writes pending bytes of another process, and stores into its streams, only if
 * this number is the one that it knows: it grows with each change of an offset in offsets.c. */
#define WEIR__PRIVATE_LAYOUT 1

/* The part that a forked child must not inherit; the kernel zeroes it. weir reads it from other processes and stores `pos`
 * and `stats.written_bytes`: offsets.c has the offsets. weir__move_stream copies everything but the fields from `lock` to
 * `refs`. */
struct weir__state {
    weir_stream s; /* first: a weir_stream pointer points to this structure */
    struct weir__lock lock;
    bool locking;                    /* copy of config->locking, in this page for each call */
    _Atomic uint16_t in_call;        /* nested calls of the only user that have not locked; 0 with `threads` */
    _Atomic uint32_t refs;           /* threads that hold a reference from weir__ref_next */
    _Atomic uint32_t reinit_running; /* 1: a thread of the child runs weir__reinit */
    int error;                       /* -errno of the first failed write, until weir_clear; 0: none */
    int read_error;                  /* -errno of the first failed read, until weir_clear; 0: none */
    bool eof;
    bool reading;          /* a seekable stream for both directions is reading */
    bool pushed_back;      /* weir_ungetc changed the read buffer, so it differs from the file */
    bool armed;            /* the timer checks the stream at `deadline`; the limits may be raised */
    uint64_t record_bytes; /* of the incomplete record above head.written */
    int64_t pos;           /* of the descriptor; -1: not known */
    uint64_t synced;       /* accepted bytes that are on the device, counted from the opening */
    uint64_t synced_whole; /* the same, including all metadata */
    struct weir__sync_groups groups;
    int64_t deadline;     /* ns of CLOCK_MONOTONIC: the timer's next check; see stale.c */
    unsigned idle_ticks;  /* consecutive checks of the timer that found nothing pending */
    unsigned failed_locks; /* the timer's consecutive failed attempts to lock; only the timer uses it */
    int64_t quiet_ns;     /* the delay before the timer's next check of a stream that is not armed */
    unsigned far_seeks;   /* consecutive seeks out of the read buffer, or out of the one that a write has discarded */
    unsigned discards;    /* consecutive changes to writing that discarded read-ahead bytes */
    int64_t discarded_from, discarded_upto; /* the range of the file that was last discarded as read-ahead bytes; 0: none */
    bool advised;         /* posix_fadvise(2) was called */
    _Atomic bool in_read; /* the lock's owner is blocked in a read; the stream is in a consistent state */
    _Atomic uintptr_t reader; /* the thread that has read into the read buffer, as in struct weir__lock; or 0 */
    struct weir_stats stats;
    uint64_t line_limit; /* as s.held_limit, in WEIR_LINE mode, for bytes other than `line_end` */
    int line_end;        /* the separator, or -1 */
    const char *reserved;    /* the room of the last weir_reserve; NULL: none, or committed */
    uint64_t reserved_accepted; /* the bytes accepted before it: a later append ends the reservation, a flush does not */
    uint64_t inherited;  /* in a copy of WEIR_FORK_KEEP: the bytes that the parent accepted, counted as `synced`; 0: none */
    _Atomic uintptr_t writer; /* the thread in a system call that writes, as in struct weir__lock; or 0 */
};

/* The part that a child inherits. weir reads some of its fields from other processes: offsets.c. */
struct weir__config {
    const struct weir__sink *sink;
    struct weir_callbacks callbacks;
    void *context;
    int fd;
    int pid; /* of the process that owns the stream */
    bool can_read, can_write;
    bool seekable, append, is_pipe, is_socket, regular, block_device, terminal;
    bool threads, locking, share, lock_file, keep_open;
    bool copied;         /* a forked child's copy of a WEIR_FORK_KEEP stream */
    uint8_t layout;      /* WEIR__PRIVATE_LAYOUT */
    enum weir_mode mode; /* never WEIR_AUTO */
    enum weir_durability durability;
    enum weir_on_fork on_fork;
    enum weir_access access;
    int separator; /* a byte, or -1 for none */
    unsigned stale_ms;
    size_t max_record_bytes;
    int sync_error;      /* -errno of a failed sync; never cleared. Stored without the lock: weir__sync_error */
    weir_stream *tied;   /* flushed before a read of this stream; NULL: none */
    char *buffer;        /* for writing */
    size_t capacity;     /* of `buffer`; weir__set_limits computes the limit from it */
    size_t bypass_bytes; /* calls of this size or more are not copied through the buffer */
    size_t mapped;       /* bytes mapped at `buffer`; 0: the caller's memory */
    char *read_buffer;
    size_t read_start;    /* offset of the first byte of a fill; the bytes below it are for weir_ungetc */
    size_t read_capacity; /* bytes from read_start on */
    size_t read_mapped;   /* bytes mapped at `read_buffer`; 0: the caller's memory, never written to */
    int peek_pipe[2];     /* peek_source.c: receives copies by tee(2); valid if peek_pid is this process */
    int peek_pid;
    struct weir__spill *spill;
    struct weir_head *shared_head; /* in the spill file's mapping; NULL: the head is in weir_stream */
    struct weir__direct *direct;
    struct weir__uring *uring;
    char *temporary;       /* weir_open_replace: path of the temporary file, which becomes `path` */
    int temporary_pid;     /* the process that created it; only this process removes it */
    mode_t set_id_bits;    /* S_ISUID and S_ISGID of the file that weir_replace replaces */
    uid_t old_owner;       /* of that file: the new one gets the bits if it has the same owner and group */
    gid_t old_group;
    char *path;            /* as given to weir_open, or NULL */
    size_t slot;           /* index in the registry */
    bool stdio_failed;     /* the error indicator of stdio/ */
    int stdio_write_error; /* -errno of the first failed write of stdio/, until clearerr(3) */
    int child;             /* process of popen(3), or 0 */
    signed char stdio_wide; /* the orientation of fwide(3): 1: wide, -1: byte, 0: none yet */
    bool stdio_wide_memory; /* of open_wmemstream(3): the sink takes whole objects of wchar_t */
    int lock_fd;           /* file_lock.c: locks the file; -1: `fd` does. Valid if lock_pid is this process */
    int lock_pid;          /* the process that opened lock_fd; 0: none */
    uint64_t lock_dev, lock_ino; /* of the file: detects that the program closed lock_fd and reused its number */
    bool has_ties;         /* weir_tie has stored this stream in another one's `tied`; accessed as an atomic */
};

extern size_t weir__page; /* bytes of a page; set by weir__process_init */

static inline struct weir__state *weir__state(const weir_stream *s)
{
    return (struct weir__state *)(uintptr_t)s;
}
static inline struct weir__config *weir__config(const weir_stream *s)
{
    return (struct weir__config *)(void *)((char *)(uintptr_t)s + weir__page);
}
static inline struct weir_head *weir__head(const weir_stream *s)
{
    struct weir_head *shared = weir__config(s)->shared_head;
    return WEIR_LIKELY(!shared) ? &((weir_stream *)(uintptr_t)s)->head : shared;
}
static inline uint64_t weir__written(const weir_stream *s)
{
    return WEIR_LOAD(&weir__head(s)->written) - weir__head(s)->base;
}
static inline uint64_t weir__drained(const weir_stream *s) { return WEIR_LOAD(&weir__head(s)->drained); }
static inline uint64_t weir__pending(const weir_stream *s) { return weir__written(s) - weir__drained(s); }
static inline int weir__sync_error(const weir_stream *s)
{
    return __atomic_load_n(&weir__config(s)->sync_error, __ATOMIC_ACQUIRE);
}
static inline uint64_t weir__unread(const weir_stream *s) { return s->held_read_limit - s->read; }
static inline char *weir__next(const weir_stream *s) { return (char *)(uintptr_t)s->read; }
static inline uint64_t weir__read_start(const weir_stream *s)
{
    return (uint64_t)(uintptr_t)weir__config(s)->read_buffer + weir__config(s)->read_start;
}
static inline size_t weir__room(const weir_stream *s)
{
    uint64_t used = weir__written(s) + weir__state(s)->record_bytes;
    return used < weir__config(s)->capacity ? weir__config(s)->capacity - used : 0;
}
/* Returns the next unread byte. WEIR_STORE stores `read` in one access, because weir_getc loads it without
 * the lock. */
static inline unsigned char weir__consume_byte(weir_stream *s)
{
    uint64_t at = s->read;
    WEIR_STORE(&s->read, at + 1);
    return *(unsigned char *)(uintptr_t)at;
}
static inline void weir__publish(weir_stream *s, uint64_t bytes)
{
    WEIR_PUBLISH(&weir__head(s)->written, WEIR_LOAD(&weir__head(s)->written) + bytes);
}

#include "internal.h"

/* Turns cancellation off; returns the argument for weir__cancel_restore. The only thread of a process can only
 * cancel itself, which it does not do inside a call. */
static inline int weir__cancel_off(void)
{
    int before = PTHREAD_CANCEL_DISABLE;
    if (!weir__one_thread())
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}
static inline void weir__cancel_restore(int before)
{
    if (before != PTHREAD_CANCEL_DISABLE)
        pthread_setcancelstate(before, NULL);
}

static inline bool weir__locking(const weir_stream *s)
{
    return __atomic_load_n(&weir__config(s)->locking, __ATOMIC_RELAXED);
}
/* From here on every call locks the stream. Never reset: another thread may still use it. */
static inline void weir__set_locking(weir_stream *s)
{
    __atomic_store_n(&weir__config(s)->locking, true, __ATOMIC_RELAXED);
    __atomic_store_n(&weir__state(s)->locking, true, __ATOMIC_RELEASE);
}

/* Begin and end every public call. Without a lock, only the stream's user stores `in_call`. */
static inline void weir__enter(weir_stream *s)
{
    if (!WEIR_LIKELY(s->magic == WEIR_STREAM_MAGIC))
        weir__reinit(s);
    struct weir__state *state = weir__state(s);
    uint16_t calls = atomic_load_explicit(&state->in_call, memory_order_relaxed);
    if (calls || !__atomic_load_n(&state->locking, __ATOMIC_RELAXED)) {
        atomic_store_explicit(&state->in_call, (uint16_t)(calls + 1), memory_order_relaxed);
        atomic_signal_fence(memory_order_seq_cst); /* membarrier(2) of the other thread orders the processor */
        if (WEIR_LIKELY(calls || !__atomic_load_n(&state->locking, __ATOMIC_RELAXED)))
            return;
        atomic_store_explicit(&state->in_call, 0, memory_order_release);
    }
    weir__lock(&state->lock, s);
}
static inline void weir__leave(weir_stream *s)
{
    struct weir__state *state = weir__state(s);
    uint16_t calls = atomic_load_explicit(&state->in_call, memory_order_relaxed);
    if (calls)
        atomic_store_explicit(&state->in_call, (uint16_t)(calls - 1), memory_order_release);
    else
        weir__unlock(&state->lock);
}

#endif /* WEIR_PRIVATE_H */
