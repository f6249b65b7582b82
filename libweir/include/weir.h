/* weir.h: byte streams that are faster than stdio and keep their promises.
 *
 * A stream (weir_stream) stands between a program and a descriptor, a piece of memory or two functions of
 * the program, with a buffer for each direction. Linux, x86-64 and aarch64, C11 or C++.
 *
 * Errors: a call returns 0, a count or a pointer's length when it is well, and `-errno` (see errno(3)) when
 * it is not; errno itself is of no meaning. WEIR_EOF says the end of the input, which is no error. The first
 * error of writing sticks: until weir_clear() every later write returns it, and the bytes that were
 * accepted but could not be written stay in the buffer (weir_stats.pending_bytes). -EAGAIN does not stick.
 *
 * Threads: a stream belongs to one thread at a time, unless it was opened with WEIR_THREADS; then every
 * call locks it. Different streams never need a lock. No call is safe in a signal handler.
 *
 * Fork: bytes that wait to be written, and bytes read ahead, belong to the parent; the child's stream
 * starts empty (weir_on_fork has the other choices; streams over memory are copied as all memory is).
 * exit(3) and exec(3) write out what waits, _exit(2) and signals do what weir_durability says.
 */
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

/* The end of the input. No errno is as large, so it is never one of them. */
#define WEIR_EOF (-4096)

typedef struct weir_stream weir_stream;

/* ---- what a stream is asked to do ---------------------------------------------------------------- */

/* When bytes leave the buffer. */
enum weir_mode {
    WEIR_AUTO = 0,   /* none for descriptor 2, line for a terminal, otherwise full */
    WEIR_NONE = 1,   /* with each call */
    WEIR_LINE = 2,   /* with each separator */
    WEIR_FULL = 3,   /* when the buffer is full */
    WEIR_RECORD = 4  /* when the buffer is full, in whole records only: see weir_putrec(3) */
};

/* What accepted bytes survive, a ladder: each level includes those before. */
enum weir_durability {
    WEIR_PROCESS = 0, /* nothing: a killed process takes what is in its buffer along */
    WEIR_KILL = 1,    /* SIGKILL, abort, _exit: the buffer is a shared mapping, see weir_recover(3) */
    WEIR_KERNEL = 2,  /* the end of the process: the bytes are the kernel's */
    WEIR_DATA = 3,    /* a power cut: the data and what is needed to read it are on the device */
    WEIR_WHOLE = 4    /* the same, with all metadata and the directory entry */
};

/* What a child made by fork(2), clone(2) finds in its copy of the stream. */
enum weir_on_fork {
    WEIR_FORK_EMPTY = 0, /* nothing: waiting and read-ahead bytes are the parent's */
    WEIR_FORK_FLUSH = 1, /* nothing; fork(3) writes out what waits first (clone(2) does not: as EMPTY) */
    WEIR_FORK_KEEP = 2   /* a copy of all, as stdio does: bytes are doubled if both go on */
};

/* How a file will be read, for posix_fadvise(2) and the size of reads. */
enum weir_access {
    WEIR_ACCESS_AUTO = 0, /* sequential until the program seeks about */
    WEIR_ACCESS_SEQUENTIAL = 1,
    WEIR_ACCESS_RANDOM = 2
};

/* weir_options.flags */
#define WEIR_THREADS 0x1u     /* threads share the stream: every call locks it */
#define WEIR_LOCK_FILE 0x2u   /* hold a lock on the file (F_OFD_SETLKW) while writing out, at its end */
#define WEIR_DIRECT 0x4u      /* around the page cache (O_DIRECT); alignment and tail are taken care of */
#define WEIR_URING 0x8u       /* write by io_uring while the program fills the next buffer */
#define WEIR_HOLDER 0x10u     /* with WEIR_KILL: a second process writes out the rest after a kill */
#define WEIR_SHARE 0x20u      /* as weir_share(3) from the start */
#define WEIR_KEEP_OPEN 0x40u  /* weir_close(3) leaves the descriptor open */

/* weir_options.separator */
#define WEIR_SEPARATOR_NONE (-1) /* records have no separator: each weir_putrec(3) is one */
#define WEIR_SEPARATOR_NUL 256   /* the byte 0 (0 itself means the default, a newline) */

/* How to open a stream. All zero is the default for everything. */
struct weir_options {
    enum weir_mode mode;
    enum weir_durability durability; /* what every completed record has before the call returns */
    enum weir_on_fork on_fork;
    enum weir_access access;
    unsigned flags;          /* WEIR_THREADS … */
    int separator;           /* ends a line or record; 0 is a newline */
    unsigned stale_ms;       /* no completed byte waits longer in the process; 0: as long as it takes */
    unsigned reserved_0;
    size_t buffer_bytes;     /* 1 to WEIR_BUFFER_MAX; 0: by the kind of file, st_blksize and measured gain */
    void *buffer;            /* buffer_bytes of the caller's, until weir_close; NULL: the stream's own */
    size_t max_record_bytes; /* no line or record to be read is longer, else -EMSGSIZE; 0: no limit */
    const char *spill;       /* WEIR_KILL: the file that holds the buffer; NULL: one in weir_spill_dir() */
    uint64_t reserved[8];
};

#define WEIR_BUFFER_MAX ((size_t)1 << 30)
/* So many bytes in one call are not copied through a buffer whose size the program left open. */
#define WEIR_LARGE ((size_t)32768)

/* ---- what a stream looks like --------------------------------------------------------------------
 * Public for the inline calls below and for tools that look at a process from outside; programs use the
 * calls. Offsets are from the start of the buffer. Its bytes [drained, written - base) are complete and wait.
 * The offset that is published is kept as an address: a load less for each byte. */

#define WEIR_HEAD_MAGIC UINT64_C(0x6461656872696577)   /* "weirhead" in memory */
#define WEIR_STREAM_MAGIC UINT64_C(0x6d72747372696577) /* "weirstrm" in memory */
#define WEIR_LAYOUT 1

/* The published part. That of a WEIR_KILL stream lies at the start of its shared mapping, and the one in
 * weir_stream stays at zero. */
struct weir_head {
    uint64_t magic;
    uint32_t layout;       /* WEIR_LAYOUT */
    int32_t pid;           /* the owner */
    uint64_t buffer_bytes;
    uint64_t base;         /* the buffer's address in the owner; 0 in a shared mapping: offsets there */
    uint64_t written;      /* base + the offset; stored with release order after the bytes are there */
    uint64_t drained;      /* an offset; written < base + drained: empty, the owner is about to reset both */
};

struct weir_stream {
    uint64_t magic;  /* WEIR_STREAM_MAGIC; 0 in a forked child that has not used the stream yet */
    uint32_t layout; /* WEIR_LAYOUT */
    int32_t fd;      /* -1: none */
    uint64_t limit;      /* of head.written: weir_putc goes the short way below it; 0: never (lock, line mode …) */
    uint64_t held_limit; /* the same for one who holds the lock */
    char *buffer;
    char *read_buffer;
    uint64_t read;       /* address of the next byte to be read */
    uint64_t read_limit; /* weir_getc goes the short way below it; 0: never */
    uint64_t held_read_limit;
    int32_t separator;   /* that weir_getrec may look for: a byte; -1: none, or there is a limit to mind */
    int32_t reserved;
    struct weir_head head;
};

/* ---- opening and closing --------------------------------------------------------------------------- */

/* Opens `path` as open(2) does with `oflags` (O_RDONLY, O_WRONLY, O_RDWR, O_APPEND, O_CREAT, O_TRUNC …;
 * O_CLOEXEC is added; permissions 0666 less the umask) and sets *s. `options` NULL: all defaults. */
int weir_open(weir_stream **s, const char *path, int oflags, const struct weir_options *options);

/* A stream over an open descriptor, in the directions that it was opened for. weir_close closes it. */
int weir_fdopen(weir_stream **s, int fd, const struct weir_options *options);

/* Reads `bytes` of `memory`, in place: it stays the caller's, and as it is, until weir_close. */
int weir_open_memory(weir_stream **s, const void *memory, size_t bytes, const struct weir_options *options);

/* Collects what is written in memory that grows. weir_memory gives it. */
int weir_open_collector(weir_stream **s, const struct weir_options *options);
/* What a collector has: *memory stays the stream's, until the next call with it. Returns the length. */
ssize_t weir_memory(weir_stream *s, char **memory);

/* The caller's own source or sink. Each returns a count or -errno; `close` and `seek` may be NULL. */
struct weir_callbacks {
    ssize_t (*read)(void *context, void *to, size_t bytes);         /* NULL: the stream cannot be read */
    ssize_t (*write)(void *context, const void *from, size_t bytes); /* NULL: it cannot be written */
    int64_t (*seek)(void *context, int64_t offset, int whence);     /* returns the new position */
    int (*sync)(void *context, enum weir_durability level);
    int (*close)(void *context);
};
int weir_open_callbacks(weir_stream **s, const struct weir_callbacks *callbacks, void *context,
                        const struct weir_options *options);

/* The standard streams, opened at the first call; NULL only if there is no memory. weir_stdin is tied to
 * weir_stdout when both are terminals. Not to be mixed with stdio's on the same descriptor. weir_close leaves
 * the descriptor open, so that an error of close(2) itself (network file systems) is for the caller to see. */
weir_stream *weir_stdin(void);
weir_stream *weir_stdout(void);
weir_stream *weir_stderr(void);

/* Writes out, closes and frees. Returns the error of writing that sticks, else of syncing, of reading, or of
 * closing: what weir_clear forgot is forgotten, except a failed sync. -EAGAIN alone leaves the stream open,
 * with nothing lost: try again. */
int weir_close(weir_stream *s);
/* The same, and says in *lost_bytes how many accepted bytes could not be written. */
int weir_close_lost(weir_stream *s, uint64_t *lost_bytes);

/* ---- modes ----------------------------------------------------------------------------------------- */

/* At any time: what waits stays in order. `buffer_bytes` 0 keeps the size. */
int weir_set_mode(weir_stream *s, enum weir_mode mode, size_t buffer_bytes);
/* With memory of the caller's for the buffer (as setvbuf(3)); before the first use only, else -EBUSY. */
int weir_set_buffer(weir_stream *s, enum weir_mode mode, void *buffer, size_t buffer_bytes);
int weir_set_stale(weir_stream *s, unsigned stale_ms);
enum weir_mode weir_get_mode(weir_stream *s); /* never WEIR_AUTO: what it came to */

/* ---- writing --------------------------------------------------------------------------------------- */

/* The long ways of the inline calls; they do the same, only slower. */
int weir_putc_slow(weir_stream *s, int c);
int weir_putc_held(weir_stream *s, int c);
ssize_t weir_write_slow(weir_stream *s, const void *from, size_t bytes);

/* {what waits, `from`} goes out in one writev(2) when it does not fit. Returns how many bytes were
 * accepted: fewer than asked only when an error stops it, which the next call returns. */
ssize_t weir_writev(weir_stream *s, const struct iovec *iov, int count);

/* All of C11's printf language, same output as the C library; %n is refused with -EINVAL. All or nothing:
 * returns the length, or -errno and nothing was accepted. */
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

/* Without a format. Each returns how many bytes it added, or -errno and nothing was accepted. */
int weir_put_u64(weir_stream *s, uint64_t value);
int weir_put_i64(weir_stream *s, int64_t value);
#define WEIR_SHORTEST (-1)
/* `precision` digits after the point, or WEIR_SHORTEST: as few as read back the same double. */
int weir_put_f64(weir_stream *s, double value, int precision);
ssize_t weir_put_str(weir_stream *s, const char *string); /* without its NUL */

/* One record: `from` and the separator, whole. In WEIR_RECORD it is never split over two write(2)s unless
 * larger than the system takes at once. Returns `bytes`, or -errno and nothing was accepted. */
ssize_t weir_putrec(weir_stream *s, const void *from, size_t bytes);
/* Ends the record that was begun by other calls, with the separator if there is one. */
int weir_endrec(weir_stream *s);

/* Room for at least `bytes` in the buffer itself: *to, until the next call with the stream. Returns the
 * room. weir_commit adds the first `bytes` of it; nothing is added without. */
ssize_t weir_reserve(weir_stream *s, char **to, size_t bytes);
int weir_commit(weir_stream *s, size_t bytes);

/* Everything accepted goes to the kernel (or the callback). For a stream that is read and shared, what was
 * read ahead goes back. */
int weir_flush(weir_stream *s);
int weir_flush_all(void); /* every stream of the process; the first error */

/* ---- reading --------------------------------------------------------------------------------------- */

int weir_getc_slow(weir_stream *s);
int weir_getc_held(weir_stream *s);
ssize_t weir_getrec_slow(weir_stream *s, char **record);

/* Reads until `bytes` are there, the end (fewer, then 0), or an error with nothing read. */
ssize_t weir_read(weir_stream *s, void *to, size_t bytes);
/* At least one byte, as read(2): what is in the buffer, or else one read. 0 is the end. */
ssize_t weir_read_some(weir_stream *s, void *to, size_t bytes);

/* Looks at the next `bytes`, in the buffer itself: *from, until the next call with the stream. Returns
 * how many are there, often more; fewer only at the end or before an error. */
ssize_t weir_peek(weir_stream *s, char **from, size_t bytes);
/* Goes past `bytes`. Returns how many there were. */
ssize_t weir_skip(weir_stream *s, size_t bytes);

/* Puts a byte back: the next to be read, as often as wanted. The file itself does not change. */
int weir_ungetc(weir_stream *s, int c);

/* ---- position -------------------------------------------------------------------------------------- */

/* As lseek(2), over what waits and what was read ahead. Returns the new position. Reading and writing may
 * follow each other in any order without it. */
int64_t weir_seek(weir_stream *s, int64_t offset, int whence);
int64_t weir_tell(weir_stream *s);

/* ---- durability ------------------------------------------------------------------------------------ */

/* Raises everything accepted so far to `level`. Threads that sync one stream at the same time share one
 * fdatasync(2). An error of the device is remembered for ever: no later call says 0. */
int weir_sync(weir_stream *s, enum weir_durability level);

/* Opens a temporary file beside `path`. weir_replace writes out, syncs the file, renames it to `path`,
 * syncs the directory, and closes: other programs see the old file or the whole new one, also after a
 * power cut. weir_close instead of it leaves `path` as it was. */
int weir_open_replace(weir_stream **s, const char *path, const struct weir_options *options);
int weir_replace(weir_stream *s);

/* Where the buffers of WEIR_KILL streams lie: $WEIR_SPILL_DIR, $XDG_RUNTIME_DIR/weir or /dev/shm/weir-UID. */
int weir_spill_dir(char *to, size_t bytes);

/* What weir_recover found. */
struct weir_recovered {
    uint64_t bytes;     /* that were complete and not yet written */
    uint64_t repeated;  /* of them, perhaps written already: 0 where the file's size or position tells */
    int32_t pid;        /* of the dead owner */
    int32_t exact;      /* 1: exactly once; 0: at least once (pipes, terminals, files with other writers) */
    char path[4096];    /* of the stream's file, or "" */
};
/* Writes what the dead owner of the spill file left to `fd`, or to the file that it was writing (fd -1),
 * and removes the spill file. -EBUSY: the owner lives. */
int weir_recover(const char *spill, int fd, struct weir_recovered *found);

/* ---- sharing --------------------------------------------------------------------------------------- */

/* From now on others use the descriptor as well, in turns: what was read ahead of a file is given back
 * (lseek(2)) at each weir_flush, fork(3), exec(3), exit(3) and close; a pipe, socket or terminal is never
 * read further than asked; what waits to be written goes out at the same moments. */
int weir_share(weir_stream *s);
/* Reading `in` from its descriptor flushes `out` first. NULL: no longer. */
int weir_tie(weir_stream *in, weir_stream *out);
/* The descriptor, or -EBADF. weir_fileno flushes and gives back first, so that it can be used at once. */
int weir_fd(const weir_stream *s);
int weir_fileno(weir_stream *s);

/* ---- threads --------------------------------------------------------------------------------------- */

/* Several calls in a row without others' in between (WEIR_THREADS); may be nested. */
void weir_lock(weir_stream *s);
int weir_trylock(weir_stream *s); /* 0, or -EBUSY */
void weir_unlock(weir_stream *s);

/* ---- state ----------------------------------------------------------------------------------------- */

int weir_error(weir_stream *s); /* the error that sticks, or 0 */
int weir_eof(weir_stream *s); /* 1: a read met the end, until weir_clear, a seek, weir_ungetc or a write */
void weir_clear(weir_stream *s); /* forgets both; what could not be written is tried again by the next flush */

struct weir_stats {
    uint64_t pending_bytes;   /* accepted, not yet written */
    uint64_t unread_bytes;    /* read ahead, not yet taken */
    uint64_t written_bytes;   /* by this stream, to the kernel or callback */
    uint64_t read_bytes;
    uint64_t writes, reads, seeks, syncs; /* system calls or callbacks */
    uint64_t short_writes, interrupted, again; /* short counts, EINTR, EAGAIN */
    uint64_t stale_drains;    /* written out because their time was over */
    uint64_t shared_syncs;    /* weir_sync calls that another's fdatasync served */
    uint64_t buffer_bytes, read_buffer_bytes;
    int error, sync_error;    /* that stick */
    enum weir_mode mode;
    enum weir_durability durability;
};
int weir_get_stats(weir_stream *s, struct weir_stats *stats);

/* ---- the short ways -------------------------------------------------------------------------------- */

#if defined(__GNUC__)
#define WEIR_LIKELY(x) __builtin_expect(!!(x), 1)
#define WEIR_LOAD(p) __atomic_load_n(p, __ATOMIC_RELAXED)
#define WEIR_PUBLISH(p, v) __atomic_store_n(p, v, __ATOMIC_RELEASE)
#if defined(__clang__) || defined(__SANITIZE_THREAD__)
#define WEIR_STORE(p, v) __atomic_store_n(p, v, __ATOMIC_RELAXED)
#else /* for gcc an atomic store is a reason to load everything else again */
#define WEIR_STORE(p, v) (*(volatile uint64_t *)(p) = (v))
#endif
#else /* no atomics that C and C++ share: everything goes the long way */
#define WEIR_LIKELY(x) 0
#define WEIR_LOAD(p) (*(p))
#define WEIR_STORE(p, v) (*(p) = (v))
#define WEIR_PUBLISH(p, v) (*(p) = (v))
#endif

/* A process with one thread needs no lock, as glibc knows; other C libraries do not say. */
#if defined(__GLIBC__) && defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 32)
#include <sys/single_threaded.h>
#define WEIR_ONE_THREAD() __libc_single_threaded
#endif
#endif
#ifndef WEIR_ONE_THREAD
#define WEIR_ONE_THREAD() 0
#endif

/* Adds one byte. Returns it as unsigned char, or -errno. */
static inline int weir_putc(weir_stream *s, int c)
{
    uint64_t at = WEIR_LOAD(&s->head.written);
    if (WEIR_LIKELY(at < WEIR_LOAD(&s->limit)) || (WEIR_ONE_THREAD() && at < WEIR_LOAD(&s->held_limit))) {
        *(char *)(uintptr_t)at = (char)c;
        WEIR_PUBLISH(&s->head.written, at + 1);
        return (unsigned char)c;
    }
    return weir_putc_slow(s, c);
}

/* The same for one who holds the lock, or shares the stream with no thread. */
static inline int weir_putc_unlocked(weir_stream *s, int c)
{
    uint64_t at = WEIR_LOAD(&s->head.written);
    if (WEIR_LIKELY(at < WEIR_LOAD(&s->held_limit))) {
        *(char *)(uintptr_t)at = (char)c;
        WEIR_PUBLISH(&s->head.written, at + 1);
        return (unsigned char)c;
    }
    return weir_putc_held(s, c);
}

/* The next byte, WEIR_EOF, or -errno: `while ((c = weir_getc(s)) >= 0)`. */
static inline int weir_getc(weir_stream *s)
{
    uint64_t at = WEIR_LOAD(&s->read);
    /* The limit of a stream that threads share is never changed: see weir__set_limits. */
    if (WEIR_LIKELY(at < s->read_limit) || (WEIR_ONE_THREAD() && at < s->held_read_limit)) {
        s->read = at + 1; /* no other thread looks: the limit of a shared stream is 0 */
        return *(unsigned char *)(uintptr_t)at;
    }
    return weir_getc_slow(s);
}

static inline int weir_getc_unlocked(weir_stream *s)
{
    uint64_t at = s->read; /* no other thread stores it or its limit, the one for delays neither */
    if (WEIR_LIKELY(at < s->held_read_limit)) {
        WEIR_STORE(&s->read, at + 1);
        return *(unsigned char *)(uintptr_t)at;
    }
    return weir_getc_held(s);
}

/* Returns how many bytes were accepted (see weir_writev), or -errno and none was. */
static inline ssize_t weir_write(weir_stream *s, const void *from, size_t bytes)
{
    uint64_t at = WEIR_LOAD(&s->head.written), limit = WEIR_LOAD(&s->limit);
    if (WEIR_LIKELY(at < limit && bytes < limit - at && bytes < WEIR_LARGE)) {
        memcpy((char *)(uintptr_t)at, from, bytes);
        WEIR_PUBLISH(&s->head.written, at + bytes);
        return (ssize_t)bytes;
    }
    return weir_write_slow(s, from, bytes);
}

/* The next line or record, in the buffer itself: *record, until the next call with the stream; not
 * NUL-terminated. Returns its length with the separator (a last one may have none), 0 at the end, or
 * -errno. It grows the buffer as far as weir_options.max_record_bytes allows. */
static inline ssize_t weir_getrec(weir_stream *s, char **record)
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
}
#endif
#endif /* WEIR_H */
