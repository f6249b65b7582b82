/* weir.h: buffered byte streams for Linux (x86-64, aarch64), for C11 and C++. Start with libweir(7); each
 * function has a manual page in section 3.
 *
 * STREAMS. A stream (weir_stream) reads and writes a descriptor, memory, or callbacks of the program, with
 * one buffer for each direction.
 *
 * ERRORS. Functions return 0 or a count on success and a negative error number (`-errno`, see errno(3)) on
 * failure; the value of errno after a call is unspecified. WEIR_EOF means the end of the input. The first
 * write error is sticky: every later write returns it until weir_clear(3). Bytes that were accepted and could
 * not be written stay in the buffer (weir_stats.pending_bytes). -EAGAIN is not sticky.
 *
 * THREADS. A stream may be used by one thread at a time. With WEIR_THREADS any number of threads may use
 * it: every call locks it. Different streams may always be used concurrently. No function is
 * async-signal-safe.
 *
 * FORK. Pending and read-ahead bytes stay in the parent; the child's stream starts with empty buffers.
 * weir_options.on_fork selects another behaviour. Streams over memory are copied with the process's memory.
 * exit(3), the exec(3) functions and daemon(3) flush all streams. After _exit(2) or a signal, also of the parent after
 * a fork, weir_options.durability determines which bytes survive. */
#ifndef WEIR_H
#define WEIR_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_VERSION_MAJOR 0
#define WEIR_VERSION_MINOR 1
#define WEIR_VERSION_PATCH 0

/* The end of the input. Not a negated errno: Linux's are at most 4095. */
#define WEIR_EOF (-4096)

typedef struct weir_stream weir_stream;

/* ---- options ------------------------------------------------------------------------------------- */

/* When pending bytes are written. */
enum weir_mode {
    WEIR_AUTO = 0,   /* NONE for descriptor 2, LINE for a terminal, otherwise FULL */
    WEIR_NONE = 1,   /* at each call */
    WEIR_LINE = 2,   /* at each separator */
    WEIR_FULL = 3,   /* when the buffer is full */
    WEIR_RECORD = 4  /* when the buffer is full, whole records only: weir_putrec(3) */
};

/* The events that accepted bytes survive. Each level includes the levels before it. */
enum weir_durability {
    WEIR_PROCESS = 0, /* nothing: a killed process loses its buffer */
    WEIR_KILL = 1,    /* SIGKILL, abort(3), _exit(2): the buffer is a shared mapping, see weir_recover(3) */
    WEIR_KERNEL = 2,  /* the end of the process: the kernel has the bytes when the call returns */
    WEIR_DATA = 3,    /* power loss: the data and the metadata to read it, as fdatasync(2) */
    WEIR_WHOLE = 4    /* power loss: all metadata and the directory entry, as fsync(2) */
};

/* The content of a stream's copy in a child of fork(2) or clone(2). */
enum weir_on_fork {
    WEIR_FORK_EMPTY = 0, /* empty buffers; pending and read-ahead bytes stay in the parent */
    WEIR_FORK_FLUSH = 1, /* empty buffers; fork(3) flushes the parent's stream first, clone(2) does not */
    WEIR_FORK_KEEP = 2   /* a copy of the buffers, as in stdio: both processes may write the same bytes. At an exec
                          * the child writes what it has added; after clone(2) nothing */
};

/* The expected access to a file, for posix_fadvise(2) and the size of reads. */
enum weir_access {
    WEIR_ACCESS_AUTO = 0, /* sequential until the program seeks repeatedly */
    WEIR_ACCESS_SEQUENTIAL = 1,
    WEIR_ACCESS_RANDOM = 2
};

/* weir_options.flags */
#define WEIR_THREADS 0x1u     /* threads share the stream: every call locks it */
#define WEIR_LOCK_FILE 0x2u   /* lock the file (F_OFD_SETLKW) during each write, and write at its end */
#define WEIR_DIRECT 0x4u      /* bypass the page cache (O_DIRECT); libweir aligns the transfers */
#define WEIR_URING 0x8u       /* write by io_uring(7) while the program fills the other half of the buffer */
#define WEIR_HOLDER 0x10u     /* with WEIR_KILL: a second process writes the pending bytes after a kill */
#define WEIR_SHARE 0x20u      /* the descriptor is shared with other users, see weir_share(3) */
#define WEIR_KEEP_OPEN 0x40u  /* weir_close(3) does not close the descriptor */

/* weir_options.separator */
#define WEIR_SEPARATOR_NONE (-1) /* no separator: each weir_putrec(3) is a record */
#define WEIR_SEPARATOR_NUL 256   /* the byte 0; a separator of 0 means the default, '\n' */

/* How to open a stream. Zero in a member selects its default. */
struct weir_options {
    enum weir_mode mode;
    enum weir_durability durability; /* of each completed record when the call returns */
    enum weir_on_fork on_fork;
    enum weir_access access;
    unsigned flags;          /* WEIR_THREADS and others */
    int separator;           /* ends a line or record; 0: '\n' */
    unsigned stale_ms;       /* milliseconds a completed byte may stay in the process; 0: no limit */
    unsigned reserved_0;
    size_t buffer_bytes;     /* 1 to WEIR_BUFFER_MAX; 0: chosen by file type, st_blksize and measurements */
    void *buffer;            /* buffer_bytes of the caller's memory, in use until weir_close; NULL: allocated */
    size_t max_record_bytes; /* reading a longer line or record fails with -EMSGSIZE; 0: no limit */
    const char *spill;       /* WEIR_KILL: path of the spill file; NULL: a new one in weir_spill_dir() */
    uint64_t reserved[8];
};

#define WEIR_BUFFER_MAX 0x40000000ul /* bytes: 1 GiB */
/* With the default buffer size, calls with at least this many bytes bypass the buffer. */
#define WEIR_LARGE 32768ul

/* ---- layout --------------------------------------------------------------------------------------
 * Public for the inline functions below and for tools that inspect a process; programs do not access it.
 * Offsets count from the start of the buffer. The bytes [drained, written - base) are complete and pending.
 * `written` is an address (base + offset), which saves the inline functions a load. */

#define WEIR_HEAD_MAGIC UINT64_C(0x6461656872696577)   /* "weirhead" in memory */
#define WEIR_STREAM_MAGIC UINT64_C(0x6d72747372696577) /* "weirstrm" in memory */
#define WEIR_LAYOUT 1

/* The published offsets of a stream's write buffer. A WEIR_KILL stream has its head at the start of its
 * shared mapping; the one in weir_stream is then unused and 0. */
struct weir_head {
    uint64_t magic;
    uint32_t layout;       /* WEIR_LAYOUT */
    int32_t pid;           /* of the process that owns the stream */
    uint64_t buffer_bytes;
    uint64_t base;         /* the buffer's address in the owner; 0 in a shared mapping */
    uint64_t written;      /* base + offset; stored with release order after the bytes below it */
    uint64_t drained;      /* an offset; if written < base + drained, the buffer is empty and being reset */
};

struct weir_stream {
    uint64_t magic;  /* WEIR_STREAM_MAGIC; 0 in a forked child that has not used the stream yet */
    uint32_t layout; /* WEIR_LAYOUT */
    int32_t fd;      /* -1: none */
    uint64_t limit;      /* weir_putc's fast path requires head.written < limit; 0: never */
    uint64_t held_limit; /* the same, for a caller that holds the lock */
    char *buffer;
    char *read_buffer;
    uint64_t read;       /* address of the next unread byte */
    uint64_t read_limit; /* weir_getc's fast path requires read < read_limit; 0: never */
    uint64_t held_read_limit;
    int32_t separator;   /* for the inline weir_getrec: a byte; -1: none, or max_record_bytes is set */
    int32_t reserved;
    struct weir_head head;
};

/* ---- opening and closing --------------------------------------------------------------------------- */

/* Opens `path` with the flags of open(2) and sets *s. O_CLOEXEC is added; a new file has mode 0666 &
 * ~umask. `options` NULL selects all defaults. Returns 0; -EINVAL for invalid options, or an error of
 * open(2), fstat(2) or mmap(2). On failure *s is NULL. */
int weir_open(weir_stream **s, const char *path, int oflags, const struct weir_options *options);

/* Opens a stream over an open descriptor, for the directions of its access mode. weir_close closes the
 * descriptor, unless WEIR_KEEP_OPEN is set. On failure the descriptor stays open. */
int weir_fdopen(weir_stream **s, int fd, const struct weir_options *options);

/* Opens a stream that reads `bytes` bytes of `memory` in place. The memory belongs to the caller and must
 * not change before weir_close. */
int weir_open_memory(weir_stream **s, const void *memory, size_t bytes, const struct weir_options *options);

/* Opens a stream that collects its output in memory. weir_memory returns the memory. */
int weir_open_collector(weir_stream **s, const struct weir_options *options);
/* Sets *memory to the data of a collector and returns its length. The memory belongs to the stream and is
 * valid until the next call for it. */
ssize_t weir_memory(weir_stream *s, char **memory);

/* Operations of a stream over callbacks. Each returns a count, a position or 0 on success and -errno on
 * failure. They are called with the stream locked (WEIR_THREADS) and must not use the stream. `close`,
 * `seek` and `sync` may be NULL. */
struct weir_callbacks {
    ssize_t (*read)(void *context, void *to, size_t bytes);         /* 0: the end; NULL: not readable */
    ssize_t (*write)(void *context, const void *from, size_t bytes); /* NULL: not writable */
    int64_t (*seek)(void *context, int64_t offset, int whence);     /* returns the new position, as lseek(2) */
    int (*sync)(void *context, enum weir_durability level);
    int (*close)(void *context);
};
int weir_open_callbacks(weir_stream **s, const struct weir_callbacks *callbacks, void *context,
                        const struct weir_options *options);

/* Return the standard streams, opened at the first call; NULL only without memory. weir_stdin is tied to
 * weir_stdout if both are terminals (weir_tie). Do not use stdio on the same descriptor. weir_close does
 * not close the descriptor; a program that must see errors of close(2) calls it itself. */
weir_stream *weir_stdin(void);
weir_stream *weir_stdout(void);
weir_stream *weir_stderr(void);

/* Flushes, closes and frees the stream. Returns the first of: the sticky write error, a sync error, a read
 * error, an error of closing. Errors before weir_clear are not returned, except those of a failed
 * sync. -EAGAIN leaves the stream open, with nothing lost; after any other result it is freed. */
int weir_close(weir_stream *s);
/* As weir_close; also sets *lost_bytes to the number of accepted bytes that could not be written. */
int weir_close_lost(weir_stream *s, uint64_t *lost_bytes);

/* ---- modes ----------------------------------------------------------------------------------------- */

/* Changes the mode and the buffer size at any time; pending bytes keep their order. `buffer_bytes` 0 keeps
 * the size. */
int weir_set_mode(weir_stream *s, enum weir_mode mode, size_t buffer_bytes);
/* Sets the mode and uses the caller's memory as buffer until weir_close, as setvbuf(3). Returns -EBUSY if
 * the stream has already been used. */
int weir_set_buffer(weir_stream *s, enum weir_mode mode, void *buffer, size_t buffer_bytes);
int weir_set_stale(weir_stream *s, unsigned stale_ms); /* changes weir_options.stale_ms; 0: no limit. Returns 0 or -errno */
enum weir_mode weir_get_mode(weir_stream *s); /* never WEIR_AUTO */

/* ---- writing --------------------------------------------------------------------------------------- */

/* The slow paths of the inline functions, which call them. They accept the same arguments. */
int weir_putc_slow(weir_stream *s, int c);
int weir_putc_held(weir_stream *s, int c);
ssize_t weir_write_slow(weir_stream *s, const void *from, size_t bytes);

/* Writes the entries in order, as writev(2). If they do not fit the buffer, one writev(2) writes the
 * pending bytes and the entries. Returns how many bytes were accepted: fewer than the total only after an
 * error, which the next call returns. */
ssize_t weir_writev(weir_stream *s, const struct iovec *iov, int count);

/* Format as C11's printf(3), with the C library's output. %n fails with -EINVAL. Return the length, or
 * -errno with nothing accepted. */
int weir_printf(weir_stream *s, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 2, 3)))
#endif
    ;
int weir_vprintf(weir_stream *s, const char *format, va_list arguments)
#if defined(__GNUC__)
    __attribute__((format(printf, 2, 0)))
#endif
    ;

/* Append a number or string without a format. Return how many bytes they appended, or -errno with nothing
 * accepted. */
int weir_put_u64(weir_stream *s, uint64_t value);
int weir_put_i64(weir_stream *s, int64_t value);
#define WEIR_SHORTEST (-1)
/* Appends `precision` digits after the point; WEIR_SHORTEST: the fewest digits that read back as the same
 * double. */
int weir_put_f64(weir_stream *s, double value, int precision);
ssize_t weir_put_str(weir_stream *s, const char *string); /* without its NUL */

/* Appends a record: `bytes` bytes and the separator. In WEIR_RECORD mode a record is never divided between
 * two write(2) calls, unless it is larger than the kernel accepts in one. Returns `bytes`, or -errno with
 * nothing accepted. */
ssize_t weir_putrec(weir_stream *s, const void *from, size_t bytes);
/* Ends a record begun by other calls: appends the separator, if there is one. */
int weir_endrec(weir_stream *s);

/* Reserves at least `bytes` bytes in the buffer and sets *to to their address, which is valid until the
 * next call for the stream. Returns the room. weir_commit appends the first `bytes` of them; without it
 * nothing is appended. weir_commit returns -EINVAL if `bytes` exceeds the room; another call for the stream leaves
 * none. */
ssize_t weir_reserve(weir_stream *s, char **to, size_t bytes);
int weir_commit(weir_stream *s, size_t bytes);

/* Writes everything accepted to the kernel or the callback. A shared stream (weir_share) also gives back
 * its read-ahead bytes. */
int weir_flush(weir_stream *s);
int weir_flush_all(void); /* flushes every stream of the process; returns the first error */

/* ---- reading --------------------------------------------------------------------------------------- */

int weir_getc_slow(weir_stream *s);
int weir_getc_held(weir_stream *s);
ssize_t weir_getrec_slow(weir_stream *s, char **record);

/* Reads until `bytes` bytes are read, or the end or an error is met. Returns the count; 0 at the end; an
 * error only if nothing was read. */
ssize_t weir_read(weir_stream *s, void *to, size_t bytes);
/* Reads at least one byte, as read(2): from the buffer, or by one read. 0 is the end. */
ssize_t weir_read_some(weir_stream *s, void *to, size_t bytes);

/* Sets *from to the next unread bytes in the buffer, without consuming them; valid until the next call for
 * the stream. Returns how many there are: at least `bytes`, and fewer only at the end or before an error. */
ssize_t weir_peek(weir_stream *s, char **from, size_t bytes);
/* Discards up to `bytes` bytes. Returns the count. */
ssize_t weir_skip(weir_stream *s, size_t bytes);

/* Puts a byte back in front of the unread bytes, until WEIR_BUFFER_MAX bytes are unread (-EMSGSIZE). The file
 * does not change. Returns the byte. */
int weir_ungetc(weir_stream *s, int c);

/* ---- position -------------------------------------------------------------------------------------- */

/* Sets and returns the stream's position, as lseek(2) and including buffered bytes. weir_seek returns the
 * new position. Reads and writes may alternate without a seek: a read from the descriptor writes pending bytes
 * first, also on a socket or terminal. -ESPIPE: not seekable. */
int64_t weir_seek(weir_stream *s, int64_t offset, int whence);
int64_t weir_tell(weir_stream *s);

/* ---- durability ------------------------------------------------------------------------------------ */

/* Raises the durability of everything accepted so far to `level`. Threads that sync one stream at the
 * same time share one fdatasync(2). After an error of the device every later call fails, also after
 * weir_clear. */
int weir_sync(weir_stream *s, enum weir_durability level);

/* weir_open_replace opens a temporary file in the directory of `path`. weir_replace flushes, syncs the
 * file, renames it to `path`, syncs the directory and closes: other programs see the old or the new file,
 * never a part, also after a power loss. weir_close instead leaves `path` unchanged. The working directory may
 * change meanwhile. */
int weir_open_replace(weir_stream **s, const char *path, const struct weir_options *options);
int weir_replace(weir_stream *s);

/* Copies the path of the directory for spill files to `to`: $WEIR_SPILL_DIR, $XDG_RUNTIME_DIR/weir, or
 * /dev/shm/weir-UID. -ENAMETOOLONG: it needs more than `bytes` bytes. */
int weir_spill_dir(char *to, size_t bytes);

/* The result of weir_recover. */
struct weir_recovered {
    uint64_t bytes;     /* complete and pending when the owner died */
    uint64_t repeated;  /* of them, possibly written before; 0 if the file's size or position excludes that */
    int32_t pid;        /* of the dead owner */
    int32_t exact;      /* 1: exactly once; 0: at least once (pipes, terminals, files with other writers) */
    char path[4096];    /* of the stream's file, or "" */
};
/* Writes the pending bytes that a dead owner left in its spill file to `fd`, or with -1 to the owner's
 * file, and removes the spill file. -EBUSY: the owner is alive. -EBADMSG: not a valid spill file. On
 * failure the spill file stays. */
int weir_recover(const char *spill, int fd, struct weir_recovered *found);

/* ---- sharing --------------------------------------------------------------------------------------- */

/* Prepares a stream for other users of its descriptor. From now on weir_flush, fork(3), exec(3), exit(3)
 * and weir_close flush it and give back read-ahead bytes by lseek(2). From a pipe, socket or terminal no
 * more is read than requested. */
int weir_share(weir_stream *s);
/* Flushes `out` before each read from the descriptor of `in`. NULL removes the tie. */
int weir_tie(weir_stream *in, weir_stream *out);
/* Return the descriptor, or -EBADF if there is none. weir_fileno flushes and gives back read-ahead bytes
 * first, so that the caller may use the descriptor. */
int weir_fd(const weir_stream *s);
int weir_fileno(weir_stream *s);

/* ---- threads --------------------------------------------------------------------------------------- */

/* Lock the stream for several calls (WEIR_THREADS). The lock is recursive. */
void weir_lock(weir_stream *s);
int weir_trylock(weir_stream *s); /* returns 0 or -EBUSY */
void weir_unlock(weir_stream *s);

/* ---- state ----------------------------------------------------------------------------------------- */

int weir_error(weir_stream *s); /* returns the sticky error, or 0 */
int weir_eof(weir_stream *s); /* returns 1 at the end of the input; a seek, weir_ungetc or a write resets it */
void weir_clear(weir_stream *s); /* clears both; the next flush tries again to write pending bytes */

struct weir_stats {
    uint64_t pending_bytes;   /* accepted, not written yet */
    uint64_t unread_bytes;    /* read ahead, not consumed yet */
    uint64_t written_bytes;   /* to the kernel or the callback */
    uint64_t read_bytes;
    uint64_t writes, reads, seeks, syncs; /* system calls or callback calls */
    uint64_t short_writes, interrupted, again; /* short counts, EINTR, EAGAIN */
    uint64_t stale_drains;    /* writes by the timer of stale_ms */
    uint64_t shared_syncs;    /* weir_sync calls covered by another thread's fdatasync */
    uint64_t buffer_bytes, read_buffer_bytes;
    int error, sync_error;    /* -errno of the sticky ones, or 0 */
    enum weir_mode mode;
    enum weir_durability durability;
};
int weir_get_stats(weir_stream *s, struct weir_stats *stats);

/* ---- inline fast paths --------------------------------------------------------------------------- */

/* The functions are C, too: their casts are no fault of a C++ program. */
#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast"
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuseless-cast"
#endif
#endif

#if defined(__GNUC__)
#define WEIR_INLINE static __inline__ /* also in C89 */
#define WEIR_LIKELY(x) __builtin_expect(!!(x), 1)
#define WEIR_LOAD(p) __atomic_load_n(p, __ATOMIC_RELAXED)
#define WEIR_PUBLISH(p, v) __atomic_store_n(p, v, __ATOMIC_RELEASE)
#if defined(__clang__) || defined(__SANITIZE_THREAD__)
#define WEIR_STORE(p, v) __atomic_store_n(p, v, __ATOMIC_RELAXED)
#else /* gcc does not move other loads across an atomic store */
#define WEIR_STORE(p, v) (*(volatile uint64_t *)(p) = (v))
#endif
#else /* without atomics common to C and C++ all calls take the slow path */
#define WEIR_INLINE static inline
#define WEIR_LIKELY(x) 0
#define WEIR_LOAD(p) (*(p))
#define WEIR_STORE(p, v) (*(p) = (v))
#define WEIR_PUBLISH(p, v) (*(p) = (v))
#endif

/* True if the process has one thread, and needs no lock. Only glibc has the variable. */
#if defined(__GLIBC__) && defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 32)
#include <sys/single_threaded.h>
#define WEIR_ONE_THREAD() __libc_single_threaded
#endif
#endif
#ifndef WEIR_ONE_THREAD
#define WEIR_ONE_THREAD() 0
#endif

/* Appends one byte. Returns it as unsigned char, or -errno. */
WEIR_INLINE int weir_putc(weir_stream *s, int c)
{
    uint64_t at = WEIR_LOAD(&s->head.written);
    if (WEIR_LIKELY(at < WEIR_LOAD(&s->limit)) || (WEIR_ONE_THREAD() && at < WEIR_LOAD(&s->held_limit))) {
        *(char *)(uintptr_t)at = (char)c;
        WEIR_PUBLISH(&s->head.written, at + 1);
        return (unsigned char)c;
    }
    return weir_putc_slow(s, c);
}

/* As weir_putc, for a thread that holds the lock, or does not share the stream. */
WEIR_INLINE int weir_putc_unlocked(weir_stream *s, int c)
{
    uint64_t at = WEIR_LOAD(&s->head.written);
    if (WEIR_LIKELY(at < WEIR_LOAD(&s->held_limit))) {
        *(char *)(uintptr_t)at = (char)c;
        WEIR_PUBLISH(&s->head.written, at + 1);
        return (unsigned char)c;
    }
    return weir_putc_held(s, c);
}

/* Returns the next byte, WEIR_EOF, or -errno: `while ((c = weir_getc(s)) >= 0)`. */
WEIR_INLINE int weir_getc(weir_stream *s)
{
    uint64_t at = WEIR_LOAD(&s->read);
    /* A plain load: the read limit of a shared stream is always 0, see weir__set_limits. */
    if (WEIR_LIKELY(at < s->read_limit) || (WEIR_ONE_THREAD() && at < s->held_read_limit)) {
        s->read = at + 1; /* a plain store: no other thread reads it, as the limit of a shared stream is 0 */
        return *(unsigned char *)(uintptr_t)at;
    }
    return weir_getc_slow(s);
}

WEIR_INLINE int weir_getc_unlocked(weir_stream *s)
{
    uint64_t at = s->read; /* plain loads: no other thread stores `read` or its limit, nor does the timer */
    if (WEIR_LIKELY(at < s->held_read_limit)) {
        WEIR_STORE(&s->read, at + 1);
        return *(unsigned char *)(uintptr_t)at;
    }
    return weir_getc_held(s);
}

/* Appends bytes. Returns how many were accepted (see weir_writev), or -errno with none accepted. */
WEIR_INLINE ssize_t weir_write(weir_stream *s, const void *from, size_t bytes)
{
    uint64_t at = WEIR_LOAD(&s->head.written), limit = WEIR_LOAD(&s->limit);
    /* The last comparison is false for 0 bytes: memcpy(3) must not get NULL, not even then. */
    if (WEIR_LIKELY(at < limit && bytes < limit - at && bytes - 1 < WEIR_LARGE - 1)) {
        memcpy((char *)(uintptr_t)at, from, bytes);
        WEIR_PUBLISH(&s->head.written, at + bytes);
        return (ssize_t)bytes;
    }
    return weir_write_slow(s, from, bytes);
}

/* Returns the next line or record in place: sets *record to its address, which is valid until the next call
 * for the stream. It is not NUL-terminated. Returns its length including the separator (the last record may
 * have none), 0 at the end, or -errno. The buffer grows as needed, up to max_record_bytes. */
WEIR_INLINE ssize_t weir_getrec(weir_stream *s, char **record)
{
    uint64_t at = WEIR_LOAD(&s->read), limit = WEIR_LOAD(&s->read_limit);
    if (WEIR_LIKELY(at < limit && s->separator >= 0)) {
        char *start = (char *)(uintptr_t)at;
        char *end = (char *)memchr(start, s->separator, limit - at);
        if (WEIR_LIKELY(end != NULL)) {
            s->read = at + (uint64_t)(end - start) + 1;
            *record = start;
            return end - start + 1;
        }
    }
    return weir_getrec_slow(s, record);
}

#ifdef __cplusplus
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif
}
#endif
#endif /* WEIR_H */
