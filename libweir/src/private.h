/* private.h: what every part of libweir relies on. Read this before any other file.
 *
 * MEMORY. A stream is one mapping: first a page (or more) that the kernel gives a forked child as zeros
 * (MADV_WIPEONFORK), then a page that the child gets a copy of. The first holds struct weir__state: the
 * offsets, the limits, the lock, what waits; the second struct weir__config: what the stream is. The buffers
 * are mappings of their own or the caller's memory. Only weir__buffers_* change where they are.
 *
 * THE PUBLISHED OFFSET. head->written is stored with release order after the bytes below it are there. It is
 * head->base + the offset: an address where the head is the stream's own, so that weir_putc has one load less,
 * and the bare offset in a shared mapping, where base is 0. The limits are in the same measure. Below, and in
 * the code (weir__written), `written` is the offset. `read` and its limits are addresses too, of any stream.
 * Bytes [drained, written) are complete and wait; who writes them out (the owner, the delay timer, the
 * recovery after a kill, a process that peeks) reads the same two numbers. In WEIR_RECORD the bytes of a
 * record that is not complete lie above `written`, hot->record_bytes of them.
 *
 * WHO MOVES WHAT. `written` moves by the owner only: forward by publishing, to 0 by weir__reset. `drained`
 * moves in weir__write_out only. Reset is allowed only when drained == written, so that no published byte
 * ever changes its place; it stores written = 0 first, then drained = 0: whoever looks in between sees
 * written < drained, which means empty. The delay timer never resets.
 *
 * A WEIR_KILL stream's head and buffer lie in a shared mapping, and the stream's own head stays at zero, as
 * do its limits: each call finds the way there by own, because a wiped child must not.
 *
 * THE LIMITS. The inline calls compare the offset with `limit` (one who does not hold the lock) or
 * `held_limit` (one who does) and with nothing else. Every reason to take the long way - line, record and
 * no buffering, durability for each record, an error, reading, a delay that nobody waits for - lowers
 * them, in weir__set_limits only, from the state alone. A lowered limit cannot be lost: whoever changes
 * the state calls weir__set_limits afterwards, under the stream's lock where there is another thread.
 * What an inline call saw before the change may still be published after it: the delay timer therefore
 * looks again (stale.c), everything else changes the state only from calls of the owner itself.
 *
 * LOCKS, in this order: the registry's, then a stream's, then the timer's own. own->locking streams (threads
 * share them, or a delay is set) are locked by weir__enter in every public call. A stream's lock may be
 * held while waiting for the kernel; the registry's never.
 *
 * FORK. In the child hot is all zero: magic 0, limits 0, nothing waiting, lock free. Every public call
 * begins with weir__enter, which sees magic 0 and sets the stream up again from own (weir__reinit). This
 * needs no handler, so it works after clone(2). vfork(2) and CLONE_VM share the memory: there is one
 * stream, and what exit and exec flush is only what own->pid == getpid() owns. WEIR_FORK_KEEP streams
 * are not wiped. A WEIR_KILL buffer is MADV_DONTFORK; the child makes its own when it first adds a byte.
 *
 * WHAT RECOVERY MAY REPEAT. A kill between a write and the update of `drained` leaves bytes that are both
 * in the file and in the buffer. For a file that is not O_APPEND the position of each byte is kept
 * (spill.h): recovery writes it there again, exactly once. For an O_APPEND or locked file its size before the
 * write tells, if nobody else wrote to it; else, and for pipes, sockets, terminals: at least once, one write
 * at most is repeated.
 *
 * SYSTEM CALLS go through weir__kernel (kernel.c), so that tests can make any of them fail.
 */
#ifndef WEIR_PRIVATE_H
#define WEIR_PRIVATE_H

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#if defined(__GNUC__) /* the library is built with hidden symbols; the public ones are those of weir.h */
#pragma GCC visibility push(default)
#endif
#include "../include/weir.h"
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#include "kernel.h"
#include "lock.h"
#include "group_commit.h"

#if defined(__GNUC__)
#define WEIR_COLD __attribute__((cold, noinline))
#define WEIR_NOINLINE __attribute__((noinline)) /* so that the short way before it saves no registers */
#else
#define WEIR_COLD
#define WEIR_NOINLINE
#endif

struct weir__spill;  /* spill.c: the shared mapping of a WEIR_KILL stream */
struct weir__direct; /* sink_direct.c */
struct weir__uring;  /* sink_uring.c */

/* Where bytes come from and go to. write and read return a count (0 of read: the end) or -errno; short
 * counts and -EINTR are the caller's to deal with. A NULL member: cannot be done. */
struct weir__sink {
    ssize_t (*write)(weir_stream *s, const struct iovec *iov, int count);
    ssize_t (*read)(weir_stream *s, void *to, size_t bytes);
    int64_t (*seek)(weir_stream *s, int64_t offset, int whence);
    int (*sync)(weir_stream *s, enum weir_durability level);
    int (*close)(weir_stream *s);
    /* Called by weir_flush and weir_close after everything was given to write: waits for what is in
     * flight, writes what was held back. NULL: nothing to do. */
    int (*finish)(weir_stream *s);
};

/* What a forked child must not have: wiped by the kernel. */
struct weir__state {
    weir_stream s; /* first: a weir_stream pointer is a pointer to this */
    struct weir__lock lock;
    bool locking;              /* own->locking, where a byte under the lock finds it at once */
    _Atomic uint32_t refs;     /* threads that came by the registry; behind the lock, see weir__move_stream */
    _Atomic uint32_t reinit_running; /* a thread of the child sets the stream up */
    int error;              /* of writing; sticks */
    int read_error;         /* of reading; sticks */
    bool eof;
    bool reading;           /* a seekable stream for both: its position is that of the read buffer */
    bool pushed_back;       /* weir_ungetc changed the read buffer: it is not the file's bytes */
    bool armed;             /* the timer will look at the stream: the limit may be up */
    uint64_t record_bytes;  /* of the record that is not complete, above head.written */
    int64_t pos;            /* of the descriptor, as far as known; -1: not known */
    uint64_t synced;        /* bytes ever accepted that are on the device */
    uint64_t synced_whole;  /* the same with all metadata */
    struct weir__sync_groups groups;
    int64_t deadline;       /* of the oldest byte, ns of CLOCK_MONOTONIC, see stale.c */
    unsigned idle_ticks;    /* of the timer with nothing to do */
    unsigned far_seeks;     /* out of the buffer in a row: the file is read at random */
    bool advised;
    _Atomic bool in_read; /* a thread that holds the lock is in the kernel for input: all is consistent */
    struct weir_stats stats;
};

/* What the stream is; a child gets a copy. */
struct weir__config {
    const struct weir__sink *sink;
    struct weir_callbacks callbacks;
    void *context;
    int fd;
    int pid;                /* whose the stream is */
    bool can_read, can_write;
    bool seekable, append, is_pipe, is_socket, regular, block_device, terminal;
    bool threads, locking, share, lock_file, keep_open;
    bool copied;            /* a child's copy of a WEIR_FORK_KEEP stream */
    enum weir_mode mode;    /* never WEIR_AUTO */
    enum weir_durability durability;
    enum weir_on_fork on_fork;
    enum weir_access access;
    int separator;          /* byte or -1 */
    unsigned stale_ms;
    size_t max_record_bytes;
    int sync_error;         /* for ever */
    weir_stream *tied;      /* flushed before this one is read */
    char *buffer;           /* for writing */
    size_t capacity;        /* where weir__set_limits puts the limit */
    size_t bypass_bytes;    /* so many in one call go past the buffers: copying them would cost more */
    size_t mapped;          /* bytes of our mapping at `buffer`; 0: the caller's memory */
    char *read_buffer;
    size_t read_start;      /* fills begin here; what is below is room for pushed-back bytes */
    size_t read_capacity;   /* bytes from read_start */
    size_t read_mapped;
    int peek_pipe[2]; /* look_ahead.c: a pipe for copies, if look_pid is this process */
    int peek_pid;
    struct weir__spill *spill;
    struct weir_head *shared_head; /* of the spill's mapping, or NULL: the stream's own */
    struct weir__direct *direct;
    struct weir__uring *uring;
    char *temporary;        /* weir_open_replace: the file to be renamed to `path` */
    int temporary_pid;      /* whose it is: a forked child must not remove it */
    char *path;             /* as given to weir_open, or NULL */
    size_t slot;            /* in the registry */
    bool stdio_failed;      /* stdio/: its error indicator, beside the stream's own errors */
    int stdio_write_error;  /* the first that a write of stdio/ met, until clearerr(3) */
    int child;              /* popen(3)'s process, or 0 */
};

extern size_t weir__page; /* bytes of a page; set by weir__new */

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
/* weir_getc looks at `read` before it has the lock, so it is stored whole, by WEIR_STORE. */
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

/* stream.c: making, finding again in a child, and freeing */
int weir__new(weir_stream **s, const struct weir__sink *sink, const struct weir_options *options);
int weir__activate(weir_stream *s); /* after its maker has filled in own: from here on it is a stream */
void weir__free(weir_stream *s); /* the memory, not the descriptor */
void weir__wipe(weir_stream *s); /* what the kernel does to a child's copy, where it cannot */
void weir__set_limits(weir_stream *s);
void weir__set_on_fork(weir_stream *s, enum weir_on_fork on_fork);
/* s, whose lock is held and whose descriptor is gone, becomes what `made` is, which ends. Both are locked by
 * their calls and not in the registry. */
void weir__move_stream(weir_stream *s, weir_stream *made);

/* buffers.c */
int weir__buffers_init(weir_stream *s, const struct weir_options *options, size_t default_bytes);
void weir__buffers_free(weir_stream *s);
void weir__buffers_set_pointers(weir_stream *s); /* the stream's offsets follow own */
int weir__grow_write(weir_stream *s, size_t capacity);
int weir__grow_read(weir_stream *s, size_t before, size_t capacity); /* `before`: pushback room wanted */

/* open.c */
/* A stream over `fd`, in the directions of `oflags`; `path` (just opened) may be NULL. `fd` stays open if it fails. */
int weir__open_fd(weir_stream **s, int fd, int oflags, const char *path, const struct weir_options *options);
/* A stream over a descriptor that is not open: every use of it fails with -EBADF. */
int weir__closed_stream(weir_stream **s, int fd, const struct weir_options *options);

/* close.c: both parts of it, for those who keep the stream */
int weir__close_flush(weir_stream *s); /* the lock is held: what waits goes out */
int weir__close_sink(weir_stream *s);  /* of the descriptor or callbacks */

/* std.c */
bool weir__is_standard(const weir_stream *s);
extern _Atomic bool weir__stdio_used; /* from then on they are opened as stdio/ wants them */

/* options.c */
int weir__options_check(const struct weir_options *options);
size_t weir__default_bytes(const weir_stream *s, int64_t block_bytes);

/* pool.c: whole pages of memory, for the next stream. Any thread, at any time. */
enum weir__pool { WEIR__POOL_STREAMS, WEIR__POOL_BUFFERS, WEIR__POOLS };
void *weir__pool_get(enum weir__pool pool, size_t bytes);              /* NULL: there is none of that size */
bool weir__pool_put(enum weir__pool pool, void *memory, size_t bytes); /* false: it stays the caller's */

/* Every public call begins with weir__enter and ends with weir__leave. */
void weir__reinit(weir_stream *s); /* in a child that finds the stream wiped */
static inline void weir__enter(weir_stream *s);
static inline void weir__leave(weir_stream *s);

static inline void weir__enter(weir_stream *s)
{
    if (!WEIR_LIKELY(s->magic == WEIR_STREAM_MAGIC))
        weir__reinit(s);
    if (weir__config(s)->locking)
        weir__lock(&weir__state(s)->lock, s);
}
static inline void weir__leave(weir_stream *s)
{
    if (weir__config(s)->locking)
        weir__unlock(&weir__state(s)->lock);
}

/* registry.c: every open stream of the process */
int weir__register(weir_stream *s);
void weir__unregister(weir_stream *s); /* returns when the timer has let go of it */
weir_stream *weir__next_stream(size_t *slot); /* lock-free walk; NULL: the end */
/* The same where other threads may close streams: each stays until it is released. */
weir_stream *weir__ref_next(size_t *slot);
void weir__unref(weir_stream *s);
void weir__registry_lock(void);
void weir__registry_unlock(void);

/* drain.c: the one write loop */
/* Writes out the buffer up to `upto`, then `more`; *more_done counts what was taken of `more`. */
int weir__write_out(weir_stream *s, uint64_t upto, const struct iovec *more, int count, size_t *more_done);
void weir__reset(weir_stream *s);                  /* the owner, when nothing waits */
int weir__drain(weir_stream *s);                   /* everything complete, then reset */
int weir__drain_to(weir_stream *s, uint64_t upto); /* part of it */
int weir__drain_async(weir_stream *s);             /* as weir__drain, but a ring may have it in flight */
int weir__fail(weir_stream *s, ssize_t error);     /* of writing; sticks, but for -EAGAIN */
/* How many of the `bytes` at `from` may go into one write(2) on a pipe without tearing a record. */
uint64_t weir__whole_records(const weir_stream *s, const char *from, uint64_t bytes);
int weir__after_append(weir_stream *s, uint64_t from); /* what the mode asks for after bytes from `from` */

/* write.c, record.c, reserve.c; all need the lock */
int weir__start_writing(weir_stream *s); /* 0: the stream can take bytes now */
ssize_t weir__write_held(weir_stream *s, const void *from, size_t bytes);
ssize_t weir__write_parts(weir_stream *s, const struct iovec *iov, int count, size_t total);
ssize_t weir__record_append(weir_stream *s, const struct iovec *iov, int count); /* all or nothing */
void weir__record_commit(weir_stream *s, size_t bytes); /* more of the record was put into the buffer */
ssize_t weir__reserve_held(weir_stream *s, char **to, size_t bytes);
int weir__commit_held(weir_stream *s, size_t bytes);

/* unit.c */
ssize_t weir__write_whole(weir_stream *s, const struct iovec *iov, int count); /* all or nothing */
ssize_t weir__iov_length(const struct iovec *iov, int count); /* of all together, or -EINVAL as writev(2) */

/* fill.c: the one read loop */
int weir__start_reading(weir_stream *s); /* 1: bytes or a fill are to be had, 0: the end, -errno */
ssize_t weir__fill(weir_stream *s, size_t want); /* appends to the read buffer; count, 0: the end, -errno */
ssize_t weir__read_bypass(weir_stream *s, void *to, size_t bytes); /* past the empty buffer */
void weir__discard_read(weir_stream *s);                           /* forgets the read buffer */
int weir__seek_back(weir_stream *s); /* lseek(2) over what was read ahead; 0 where that cannot be */
int weir__getc_held(weir_stream *s);
ssize_t weir__peek_held(weir_stream *s, size_t bytes);

/* look_ahead.c: of a shared pipe or socket */
size_t weir__peek_source(
    weir_stream *s); /* how many bytes can be read without taking any of the next record */
void weir__peek_source_close(weir_stream *s);

/* seek.c */
int64_t weir__kernel_pos(weir_stream *s);

/* flush.c */
int weir__flush_held(weir_stream *s);

/* process.c */
/* What the process shares; all zero at the start and, wiped by the kernel, in a forked child. */
struct weir__globals {
    struct weir__lock registry;
    size_t first_free;                  /* no slot of the registry below it is free */
    _Atomic uint32_t timer_started;     /* 1: its thread was started */
    _Atomic uint32_t timer_wake;        /* futex: goes up when there is something new to wait for */
    _Atomic int64_t timer_next;         /* when it will look next, in ns of CLOCK_MONOTONIC */
    _Atomic(weir_stream *) timer_stream; /* the stream that it is at */
};
extern struct weir__globals *weir__globals;
int weir__process_init(void); /* once a process: what exit and fork have to do */
void weir__before_exec(void);

/* stale.c */
int weir__stale_arm(weir_stream *s); /* the lock is held; something is about to wait */
void weir__stale_wait(const weir_stream *s);

/* sync.c */
int weir__sync_held(weir_stream *s, enum weir_durability level);
int weir__sync_record(weir_stream *s); /* as the stream promises for each; a failure sticks */
int weir__sync_directory(const char *path);

/* replace.c */
bool weir__has_temporary(const weir_stream *s);
void weir__remove_temporary(const weir_stream *s);

/* spill.c; hooks are called only if own->spill */
int weir__spill_init(weir_stream *s, const struct weir_options *options);
int weir__spill_reinit(weir_stream *s); /* in a child; more than once does no harm */
int weir__spill_grow(weir_stream *s, size_t capacity);
int weir__spill_append_begin(weir_stream *s); /* bytes are about to be added */
void weir__spill_write_begin(weir_stream *s, uint64_t bytes,
                             uint64_t total); /* a write of [drained…), and of others */
void weir__spill_write_end(weir_stream *s,
                           uint64_t others); /* so many of which went out, and drained was moved */
void weir__spill_reset(weir_stream *s, uint64_t bytes);  /* nothing waits; the buffer begins anew after them */
void weir__spill_free(weir_stream *s, bool keep);        /* keep: bytes are left in it, for weir_recover */
void weir__spill_exit(weir_stream *s);                   /* the process ends: no file is left if nothing waits */
void weir__spill_exec(weir_stream *s);                   /* the same, but the exec may fail */

/* sinks */
extern const struct weir__sink weir__sink_fd, weir__sink_callbacks, weir__sink_memory, weir__sink_direct,
    weir__sink_uring;
ssize_t weir__fd_write(weir_stream *s, const struct iovec *iov, int count);
ssize_t weir__fd_read(weir_stream *s, void *to, size_t bytes);
int64_t weir__fd_seek(weir_stream *s, int64_t offset, int whence);
int weir__fd_sync(weir_stream *s, enum weir_durability level);
int weir__fd_close(weir_stream *s);

/* direct.h; hooks are called only if own->direct */
int weir__direct_init(weir_stream *s);
void weir__direct_free(weir_stream *s); /* before the descriptor is closed */
size_t weir__direct_round_size(const struct weir__config *config, size_t bytes); /* of a buffer, rounded up */
bool weir__direct_align_memory(const struct weir__config *config, char **memory,
                               size_t *bytes);               /* that serves */
void weir__direct_set_capacity(struct weir__config *config); /* own->capacity is that of a new buffer */
void weir__direct_align_capacity(
    weir_stream *s); /* the buffer begins anew: a full one is to end at a boundary */
int weir__direct_trim(weir_stream *s, struct iovec *vector, int count); /* to what one write takes */
/* How many of the caller's bytes may go past the buffer; 0: they must be copied. */
size_t weir__direct_write_bypass(weir_stream *s, const char *from, size_t bytes);
bool weir__direct_can_read_bypass(weir_stream *s, const void *to, size_t bytes); /* past the buffer */
size_t weir__direct_skew(
    const struct weir__config *config); /* bytes that the last fill has from before the position */

/* sink_uring.c; hooks are called only if own->uring */
int weir__uring_init(weir_stream *s, const struct weir_options *options);
void weir__uring_free(weir_stream *s); /* before the descriptor is closed */
void weir__uring_close_in_child(weir_stream *s);                   /* at fork(3), in the child */
void weir__uring_reinit(weir_stream *s);                           /* in a child that uses the stream */
void weir__uring_allow_async(struct weir__uring *uring, bool may); /* the next write may stay in flight */
void weir__uring_swap(weir_stream *s); /* what is in flight keeps its memory, the stream gets the other */
uint64_t weir__uring_remaining(weir_stream *s, bool wait); /* bytes taken from the buffer, not yet written */
int weir__uring_resume(weir_stream *s); /* the timer's: 1 something is in flight, 0 nothing, or -errno */

#endif /* WEIR_PRIVATE_H */
