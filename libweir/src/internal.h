/* internal.h: the functions that the files of src/ share. Part of private.h, which includes it.
 *
 * All return 0 or a count, or -errno, unless a comment says otherwise. Functions that take a stream need its
 * lock, except where a comment says that they lock or that they run in another process. */
#ifndef WEIR_INTERNAL_H
#define WEIR_INTERNAL_H

/* stream.c: a stream's memory, its state in a forked child, and its limits */
/* Allocates a stream, not registered, with all options applied but no buffers. */
int weir__new(weir_stream **s, const struct weir__sink *sink, const struct weir_options *options);
/* Initializes the public part from the configuration and registers the stream. */
int weir__activate(weir_stream *s);
/* Frees the buffers and the stream; does not close the descriptor. */
void weir__free(weir_stream *s);
/* Zeroes the state, as MADV_WIPEONFORK does, for systems without it. */
void weir__wipe(weir_stream *s);
/* Initializes the state of a wiped stream in a forked child. Called without the lock. */
void weir__reinit(weir_stream *s);
/* Recomputes all limits. Called after every change that they depend on. */
void weir__set_limits(weir_stream *s);
void weir__set_on_fork(weir_stream *s, enum weir_on_fork on_fork);
/* Moves `source` into s and frees `source`. The sink of s is closed; neither stream is registered. */
void weir__move_stream(weir_stream *s, weir_stream *source);

/* buffers.c: allocating, growing and freeing buffers */
int weir__buffers_init(weir_stream *s, const struct weir_options *options, size_t default_bytes);
void weir__buffers_free(weir_stream *s);
/* Copies the buffers' addresses and sizes from the configuration to the public part and the head. */
void weir__buffers_set_pointers(weir_stream *s);
int weir__grow_write(weir_stream *s, size_t capacity);
/* `before`: bytes wanted in front of the unread bytes, for weir_ungetc. */
int weir__grow_read(weir_stream *s, size_t before, size_t capacity);

/* open.c: streams over descriptors */
/* Opens a stream over `fd` in the directions of `oflags`. `path` is not NULL if weir_open has just opened it.
 * On failure `fd` stays open. */
int weir__open_fd(weir_stream **s, int fd, int oflags, const char *path, const struct weir_options *options);
/* Returns whether weir__open_fd truncates the file, after everything else. */
bool weir__truncates_late(int oflags, const struct weir_options *options);
/* Opens a stream whose descriptor is closed: every use of it fails with -EBADF. */
int weir__closed_stream(weir_stream **s, int fd, const struct weir_options *options);

/* close.c: the two steps of closing, for callers that keep the stream */
/* Flushes, syncs as the durability requires, and seeks back over read-ahead bytes. */
int weir__close_flush(weir_stream *s);
/* Closes the descriptor or calls the close callback. */
int weir__close_sink(weir_stream *s);

/* std.c: the standard streams */
bool weir__is_standard(const weir_stream *s);
extern _Atomic bool weir__stdio_used; /* weir/stdio.h is in use: open them with its options */

/* options.c: validation and default sizes */
int weir__options_check(const struct weir_options *options);
size_t weir__default_bytes(const weir_stream *s, int64_t block_bytes);

/* pool.c: mappings of closed streams, kept for the next ones. Thread-safe. */
enum weir__pool { WEIR__POOL_STREAMS, WEIR__POOL_KEPT_STREAMS, WEIR__POOL_BUFFERS, WEIR__POOLS }; /* kept: WEIR_FORK_KEEP */
/* Returns NULL if the pool has none of that size. */
void *weir__pool_get(enum weir__pool pool, size_t bytes);
/* Returns false if the pool did not take the memory; the caller then unmaps it. */
bool weir__pool_put(enum weir__pool pool, void *memory, size_t bytes);

/* registry.c: all open streams of the process. These functions take the registry's lock themselves. */
int weir__register(weir_stream *s);
/* Returns when neither the timer nor another thread refers to the stream any more. */
void weir__unregister(weir_stream *s);
/* Returns the next stream from *slot on and advances *slot, or NULL at the end. Takes no lock. */
weir_stream *weir__next_stream(size_t *slot);
/* As weir__next_stream, and adds a reference: weir__unregister waits for weir__unref. */
weir_stream *weir__ref_next(size_t *slot);
void weir__unref(weir_stream *s);
void weir__registry_lock(void);
void weir__registry_unlock(void);

/* drain.c: the one write loop */
/* Writes the buffer up to `upto`, then the `count` entries of `more`. Adds the bytes written of `more` to
 * *more_done. */
int weir__write_out(weir_stream *s, uint64_t upto, const struct iovec *more, int count, size_t *more_done);
/* As weir__write_out of the buffer's bytes, but waits neither for the lock of the file nor for the reader of a pipe or
 * socket: returns -EAGAIN. */
int weir__write_out_now(weir_stream *s, uint64_t upto);
/* Moves both offsets to 0. Requires that nothing is pending; never called by the timer. */
void weir__reset(weir_stream *s);
/* Writes all pending bytes and resets. */
int weir__drain(weir_stream *s);
/* Writes pending bytes up to `upto`; resets if none are left. */
int weir__drain_to(weir_stream *s, uint64_t upto);
/* As weir__drain; io_uring may still have the write in flight on return. */
int weir__drain_async(weir_stream *s);
/* Records a write error in the stream (not -EAGAIN) and returns it. */
int weir__fail(weir_stream *s, ssize_t error);
/* Returns how many of the `bytes` at `from` one write(2) to a pipe may take without splitting a record. */
uint64_t weir__whole_records(const weir_stream *s, const char *from, uint64_t bytes);
/* Writes what the mode and the durability require after an append at offset `from`. */
int weir__after_append(weir_stream *s, uint64_t from);

/* file_lock.c: WEIR_LOCK_FILE */
/* Locks the whole file and moves the position to its end. Without `wait` returns -EAGAIN if another writer has
 * the lock. */
int weir__file_lock(weir_stream *s, bool wait);
void weir__file_unlock(weir_stream *s);
/* After a failed write, with the file locked: removes the bytes of an incomplete line or record from the end of
 * the file; they are pending again, or not accepted. `drained` and `done`: the stream's and *more_done's values
 * when the file was locked. */
void weir__file_take_back(weir_stream *s, uint64_t drained, const struct iovec *more, size_t done,
                          size_t *more_done);
/* Closes the descriptor for the lock; a forked child must not keep its parent's. */
void weir__file_lock_close(weir_stream *s);

/* write.c, record.c, reserve.c: appending */
/* Prepares the stream for an append. Returns 0 if it can accept bytes. */
int weir__start_writing(weir_stream *s);
ssize_t weir__write_held(weir_stream *s, const void *from, size_t bytes);
/* Appends the separator and writes the line; requires an open state->line_limit. Returns 1 or -errno. */
ssize_t weir__end_line(weir_stream *s);
ssize_t weir__write_parts(weir_stream *s, const struct iovec *iov, int count, size_t total);
/* Appends all bytes or none to the current record. */
ssize_t weir__record_append(weir_stream *s, const struct iovec *iov, int count);
/* Adds `bytes` that the caller has stored behind the current record. */
void weir__record_commit(weir_stream *s, size_t bytes);
ssize_t weir__reserve_held(weir_stream *s, char **to, size_t bytes);
/* Returns whether weir_commit may append bytes to the room of the last weir_reserve. */
bool weir__has_reservation(const weir_stream *s);
/* Appends `bytes` that the caller has stored behind the last byte. */
int weir__commit_held(weir_stream *s, size_t bytes);

/* write_whole.c */
/* Accepts all bytes or none. */
ssize_t weir__write_whole(weir_stream *s, const struct iovec *iov, int count);
/* Returns the sum of the lengths, or -EINVAL if it exceeds SSIZE_MAX, as writev(2). */
ssize_t weir__iov_length(const struct iovec *iov, int count);

/* fill.c: the one read loop */
/* Prepares the stream for reading. Returns 1 if there are unread bytes or a fill may read some, 0 at the end. */
int weir__start_reading(weir_stream *s);
/* Appends to the read buffer by one read. Returns the count; 0 is the end. */
ssize_t weir__fill(weir_stream *s, size_t want);
/* Writes the stream's own pending bytes, which a peer may wait for before it sends the bytes to read. */
void weir__flush_before_read(weir_stream *s);
/* Reads into the caller's memory. Requires an empty read buffer. */
ssize_t weir__read_bypass(weir_stream *s, void *to, size_t bytes);
/* Empties the read buffer. */
void weir__discard_read(weir_stream *s);
/* As weir__discard_read, before a write. Notes the discarded range: the next reads of a program that updates records then
 * request blocks instead of the whole buffer. `end`: the position of the descriptor before weir__seek_back, or -1. */
void weir__discard_for_write(weir_stream *s, int64_t end);
/* Moves the descriptor's position back over the unread bytes, which stay in the buffer. Does nothing if the
 * descriptor is not seekable. */
int weir__seek_back(weir_stream *s);
int weir__getc_refill(weir_stream *s);
int weir__ungetc_held(weir_stream *s, int c);
/* Returns fewer than `bytes` only at the end or before an error. `to` NULL: discards the bytes. */
ssize_t weir__read_held(weir_stream *s, char *to, size_t bytes);
/* Returns how many of `bytes` are in the buffer; fewer only at the end or before an error. */
ssize_t weir__peek_held(weir_stream *s, size_t bytes);

/* peek_source.c: for shared pipes and sockets */
/* Returns how many bytes can be read without consuming any byte of the next record; 1 if not known. */
size_t weir__peek_source(weir_stream *s);
void weir__peek_source_close(weir_stream *s);

/* seek.c */
/* Returns the descriptor's position. */
int64_t weir__kernel_pos(weir_stream *s);

/* flush.c */
int weir__flush_held(weir_stream *s);
/* The two parts of weir__flush_held: publishes an incomplete record; writes all published bytes. */
int weir__publish_begun(weir_stream *s);
int weir__flush_published(weir_stream *s);

/* process.c: hooks of fork(3) */
/* Data of the whole process. All zero at the start and, wiped by the kernel, in a forked child. */
struct weir__globals {
    struct weir__lock registry;
    size_t first_free;                   /* no slot of the registry below this one is free */
    _Atomic uint32_t timer_started;      /* 1: the timer thread was created */
    _Atomic uint32_t timer_wake;         /* futex: incremented when a stream is armed */
    _Atomic int64_t timer_next;          /* ns of CLOCK_MONOTONIC: the timer's next check of any stream */
    _Atomic(weir_stream *) timer_stream; /* the stream that the timer is checking */
    int pid;                             /* of the process; 0 in a child of clone(2) */
    _Atomic bool exiting;                /* the streams were flushed at exit */
    _Atomic bool hooks_end;              /* weir__end_fork was called */
    _Atomic uintptr_t forking;           /* the thread in fork(2) that holds the registry's lock, or 0 */
    _Atomic uintptr_t holder;            /* the exiting thread, when it holds all locks; see ending.c */
    int64_t hold_end_ms;                 /* of CLOCK_MONOTONIC: then other threads may release them, if it sleeps */
    int64_t hold_last_ms;                /* then also if it runs */
};
extern struct weir__globals *weir__globals;
/* Installs the hooks at the first call. */
int weir__process_init(void);
/* Lets the shared object with this library, if it is in one, stay loaded until the process ends, also after dlclose(3). */
void weir__stay_loaded(void);
/* Waits for a fork(2) of another thread, and then releases the locks that the hook before it took: glibc removes the
 * hooks at exit before it calls destructors, and then does not call the hook after it. */
void weir__end_fork(void);

/* owner_wait.c: the wait for calls of other threads, at exit, exec and fork */
enum { WEIR__LOCK_TIMEOUT_MS = 1000, WEIR__SLICE_MS = 5 };
struct weir__owner_wait {
    int64_t end_ms;       /* of weir__now_ms; moves while the other thread proceeds */
    int64_t last_end_ms;  /* the latest value of end_ms */
    int64_t proceeded_ms; /* of the last check that found progress of the thread */
    int64_t checked_ms;   /* of the last check */
    uintptr_t thread;     /* its address; 0: none, or threads that wait for each other */
    unsigned long sleeps; /* its voluntary context switches at the last check */
};
/* Waits WEIR__LOCK_TIMEOUT_MS in all for threads that sleep. */
void weir__owner_wait_begin(struct weir__owner_wait *w);
/* Checks the progress of a thread after a part of the wait. Returns whether to go on waiting. `thread` is the owner of a struct
 * weir__lock, or 0 for a thread that does not sleep. */
bool weir__may_wait_on(struct weir__owner_wait *w, uintptr_t thread);
/* Returns false if the owner sleeps too long. */
bool weir__lock_or_give_up(struct weir__lock *lock, struct weir__owner_wait *w);
/* Returns whether the thread runs, is ready to run or sleeps uninterruptibly; stores its voluntary context switches. */
bool weir__thread_runs(uintptr_t thread, unsigned long *sleeps);

/* ending.c: hooks of exit(3) and exec(3) */
void weir__at_exit(void);
/* Flushes all streams and holds their locks until weir__after_exec, which a failed exec calls. */
void weir__before_exec(void);
void weir__after_exec(void);
/* Flushes all streams of a process that continues in a child and ends by _exit(2). */
void weir__before_daemon(void);
/* Returns whether the process `pid` may write the stream's pending bytes. */
bool weir__belongs_to(const weir_stream *s, int pid);
/* Locks the stream of any thread; weir__leave_after_flush unlocks it. Returns false at the end of the wait, or if nothing
 * is pending and the owner is blocked in a read. A wait that has ended still takes MIN_MS for each further stream. */
bool weir__enter_for_flush(weir_stream *s, struct weir__owner_wait *w);
/* Returns whether the calling thread is in a system call that writes the stream: it is in a signal handler, or in the
 * program's function of weir_open_callbacks. The written bytes are not accounted yet, so a flush would write them twice. */
bool weir__is_writing(const weir_stream *s);
void weir__leave_after_flush(weir_stream *s);
/* As weir__flush_held, for a stream that weir__enter_for_flush has locked: its own thread may be in an inline call,
 * which does not lock, or between weir_reserve and weir_commit. Leaves the offsets where they are, as the timer does. */
int weir__flush_in_place(weir_stream *s);
/* Locks a stream that locks. Returns false at the end of the wait, or if the owner is blocked in a read and
 * nothing is pending; with `despite_pending` also if bytes are pending. */
bool weir__lock_unless_reading(weir_stream *s, struct weir__owner_wait *w, bool despite_pending);
/* Makes a stream that was opened after the flush at exit unbuffered. */
void weir__opened_at_exit(weir_stream *s);

/* stale.c: the bounded delay */
/* Arms the timer for a byte that is about to be appended. */
int weir__stale_arm(weir_stream *s);
/* Waits until the timer no longer uses the stream, which is not registered any more. Takes no lock. */
void weir__stale_wait(const weir_stream *s);

/* sync.c */
int weir__sync_held(weir_stream *s, enum weir_durability level);
/* Syncs as the stream's durability requires for each record. A failure becomes the stream's error. */
int weir__sync_record(weir_stream *s);
/* Returns 0 if a sync of WEIR_WHOLE can find the directory of the descriptor's file. */
int weir__directory_is_known(const weir_stream *s);
/* Syncs the directory of `path`. */
int weir__sync_directory(const char *path);

/* replace.c */
bool weir__has_temporary(const weir_stream *s);
void weir__remove_temporary(const weir_stream *s);

/* spill.c: hooks of WEIR_KILL streams; called only if config->spill is set */
int weir__spill_init(weir_stream *s, const struct weir_options *options);
/* In a forked child: drops the parent's file. May be called more than once. */
int weir__spill_reinit(weir_stream *s);
int weir__spill_grow(weir_stream *s, size_t capacity);
/* Before an append: creates the file if there is none and stores the mode and the position. */
int weir__spill_append_begin(weir_stream *s);
/* Before a write of `bytes` from the buffer out of `total` bytes. */
void weir__spill_write_begin(weir_stream *s, uint64_t bytes, uint64_t total);
/* After a write and the update of `drained`. `others`: bytes written that were not from the buffer. */
void weir__spill_write_end(weir_stream *s, uint64_t others);
/* Lowers `drained` to `drained` before the last `total` bytes of the file, which ends at `end`, are removed from
 * it; `bytes` of them are from the buffer. A kill before or after the removal loses and repeats nothing. */
void weir__spill_take_back(weir_stream *s, uint64_t drained, uint64_t bytes, uint64_t total, uint64_t end);
/* During weir__reset: `bytes` is the offset that becomes 0. */
void weir__spill_reset(weir_stream *s, uint64_t bytes);
/* `keep`: leaves the file, with its pending bytes, to weir_recover. */
void weir__spill_free(weir_stream *s, bool keep);
/* At exit: removes the file if nothing is pending. */
void weir__spill_exit(weir_stream *s);
/* Before exec: the same; if the exec fails, the next append creates a new file. */
void weir__spill_exec(weir_stream *s);

/* sink_*.c */
extern const struct weir__sink weir__sink_fd, weir__sink_callbacks, weir__sink_memory, weir__sink_direct,
    weir__sink_uring;
ssize_t weir__fd_write(weir_stream *s, const struct iovec *iov, int count);
ssize_t weir__fd_write_now(weir_stream *s, const struct iovec *iov, int count);
/* Opens the descriptor's file a second time, for writing. Returns the new descriptor or -errno. */
int weir__fd_reopen(int fd, int flags);
ssize_t weir__fd_read(weir_stream *s, void *to, size_t bytes);
int64_t weir__fd_seek(weir_stream *s, int64_t offset, int whence);
int weir__fd_sync(weir_stream *s, enum weir_durability level);
int weir__fd_close(weir_stream *s);

/* direct_init.c, sink_direct.c: hooks of WEIR_DIRECT streams; called only if config->direct is set */
int weir__direct_init(weir_stream *s);
/* Called before the descriptor is closed. */
void weir__direct_free(weir_stream *s);
/* Switches O_DIRECT off, if this process switched it on, for the next program that uses the open file description; not
 * `lend`: on again. */
void weir__direct_lend(weir_stream *s, bool lend);
/* Rounds a buffer's size up to whole units. */
size_t weir__direct_round_size(const struct weir__config *config, size_t bytes);
/* Shrinks the caller's buffer to the aligned part. Returns false if that is less than one unit. */
bool weir__direct_align_memory(const struct weir__config *config, char **memory, size_t *bytes);
/* Notes config->capacity as the capacity of a new write buffer. */
void weir__direct_set_capacity(struct weir__config *config);
/* With an empty buffer: sets config->capacity so that a full buffer ends at an aligned file offset. */
void weir__direct_align_capacity(weir_stream *s);
/* Trims `vector` to what one write takes and chooses its route. Returns the number of entries left. */
int weir__direct_trim(weir_stream *s, struct iovec *vector, int count);
/* Returns how many of the caller's bytes can be written without a copy; 0: all must be copied. */
size_t weir__direct_write_bypass(weir_stream *s, const char *from, size_t bytes);
/* Returns whether a read can go to the caller's memory. */
bool weir__direct_can_read_bypass(weir_stream *s, const void *to, size_t bytes);
/* Returns how many bytes before the wanted position the last fill has read. */
size_t weir__direct_skew(const struct weir__config *config);

/* sink_uring.c: hooks of WEIR_URING streams; called only if config->uring is set */
int weir__uring_init(weir_stream *s, const struct weir_options *options);
/* Waits for the write in flight. Called before the descriptor is closed. */
void weir__uring_free(weir_stream *s);
/* In the child handler of fork(3): closes the inherited ring descriptor. */
void weir__uring_close_in_child(weir_stream *s);
/* In a forked child that uses the stream: starts without a ring. */
void weir__uring_reinit(weir_stream *s);
/* Says whether the next write may still be in flight when the sink's write returns. */
void weir__uring_allow_async(struct weir__uring *uring, bool allowed);
/* During weir__reset: exchanges the buffer that was submitted with the spare one. */
void weir__uring_swap(weir_stream *s);
/* Returns how many bytes were taken from the buffer and are not written yet. */
uint64_t weir__uring_remaining(weir_stream *s, bool wait);
/* For the timer: continues a short write. Returns 1 if a write is in flight, 0 if none, or -errno. */
int weir__uring_resume(weir_stream *s);

#endif /* WEIR_INTERNAL_H */
