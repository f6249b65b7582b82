/* spill.h: the spill file, which holds the buffer of a WEIR_KILL stream, and what a kill leaves in it.
 * Private.
 *
 * THE FILE is a struct weir__spill_file, padded to whole pages, followed by the buffer. The owner maps all
 * of it shared, with MADV_DONTFORK: a forked child does not inherit it and creates its own file at its
 * first append. The file gets its name after it is complete and locked, so no other process finds an
 * incomplete one. All blocks are allocated at creation: a full file system is an error of weir_open, never
 * a SIGBUS.
 *
 * THE OWNER holds a POSIX record lock on the file. A child does not inherit it; it is released when the
 * process dies, at exec (the descriptor is close-on-exec) and by weir_close. A process that gets an OFD
 * lock may recover the file, after it has checked /proc/PID/maps: an owner that closed descriptors that
 * were not its own has lost its lock, but still maps the file. The inode in the maps also detects a reused
 * pid.
 *
 * STORES. Every store below is one aligned 64-bit store with release order. After a kill all stores before
 * some instruction are visible and none behind it:
 *   append   the bytes; written += bytes
 *   drain    inflight.from = NONE; origin; inflight.end, .bytes, .total; inflight.from = drained;
 *            write(2); drained += bytes written from the buffer; origin += other bytes written;
 *            inflight.from = NONE
 *   reset    (drained == written) written = 0; origin += bytes; drained = 0
 * Bytes are pending only while drained < written. `origin` is the sink's position of buffer offset 0. The
 * position of the next byte, origin + drained, is valid whenever bytes are pending: all stores that
 * invalidate it happen while none are. It is looked up again before the first append and before each write,
 * because other users of the descriptor may have moved it. `inflight` describes one write(2) that may or
 * may not have happened; it is valid only while inflight.from == drained.
 *
 * THE GUARANTEE for each kind of sink, after a kill between any two instructions, also of weir_recover:
 *   POSITIONED (files without O_APPEND, block devices) exactly once: recovery writes the bytes to their
 *              position; a write that happened put the same bytes there. If another writer has since
 *              extended the file over this range, its bytes stay, and ours go behind the end of the file.
 *   APPEND     (O_APPEND, WEIR_LOCK_FILE) exactly once, if no other process wrote to the file between the
 *              owner's last write and the recovery: the growth since inflight.end is that write's count,
 *              if these bytes equal the buffer's. Otherwise at least once: the write is repeated.
 *   SEQUENTIAL (pipes, sockets, terminals, and any other descriptor given to weir_recover) at least once:
 *              at most one write is repeated.
 * weir_recover can reopen POSITIONED and APPEND sinks and FIFOs by their path; others need a descriptor. */
#ifndef WEIR_SPILL_H
#define WEIR_SPILL_H

#include "private.h"

#define WEIR_SPILL_MAGIC UINT64_C(0x6c69707372696577) /* "weirspil" in memory */
#define WEIR_SPILL_LAYOUT 1
#define WEIR_SPILL_NONE UINT64_MAX
#define WEIR_SPILL_PATH 4096

enum weir__spill_kind { WEIR_SPILL_POSITIONED, WEIR_SPILL_APPEND, WEIR_SPILL_SEQUENTIAL };

/* Identity of the sink. Constant; `checksum` below covers it. */
struct weir__spill_sink {
    uint64_t dev, ino;
    uint64_t btime; /* creation time in ns, 0: not known. Detects a reused inode number */
    uint32_t type;  /* st_mode & S_IFMT */
    uint32_t kind;
    uint32_t lock; /* 1: WEIR_LOCK_FILE, written under a lock on the whole file */
    int32_t separator;
    char path[WEIR_SPILL_PATH]; /* absolute, or "" if it has none */
};

/* One write(2) that may or may not have happened. */
struct weir__inflight {
    uint64_t from;  /* buffer offset, or NONE */
    uint64_t bytes; /* from the buffer */
    uint64_t total; /* from the buffer and behind it */
    uint64_t end;   /* the file's size before the write, or NONE */
};

struct weir__spill_file {
    struct weir_head head;
    uint64_t magic;
    uint32_t layout;
    uint16_t released;     /* 1: the owner closes the stream; the holder exits */
    uint16_t holder_ready; /* 1: the holder is running */
    uint64_t buffer_at;    /* offset of the buffer in the file */
    uint64_t origin;
    struct weir__inflight inflight;
    uint64_t mode; /* enum weir_mode */
    uint64_t checksum;
    struct weir__spill_sink sink;
};

/* The owner's data for its file. `file` is NULL while there is none: in a forked child, and before an exec.
 * The next append creates it. */
struct weir__spill {
    struct weir__spill_file *file;
    size_t mapped;
    size_t capacity; /* of the buffer, also for the next file */
    int fd;          /* holds the lock; -1: none */
    uint64_t dev, ino;
    int holder; /* the holder's pid, or 0 */
    bool wants_holder;
    bool anonymous;                       /* after exit(3): anonymous memory instead of a file */
    int first_pid;                        /* the process that may use requested_path */
    char requested_path[WEIR_SPILL_PATH]; /* weir_options.spill, absolute; "": not given */
    char path[WEIR_SPILL_PATH];
};

int weir__spill_identify(int fd, struct weir__spill_sink *sink); /* fills in dev, ino, btime and type */

/* spill_file.c */
int weir__spill_create(struct weir__spill *spill, size_t buffer_bytes, const struct weir__spill_sink *sink);
int weir__spill_make_absolute(char *path, size_t bytes);
int weir__spill_allocate_blocks(int fd, uint64_t bytes);
uint64_t weir__spill_checksum(const struct weir__spill_sink *sink);
void weir__spill_unlink(const char *path, uint64_t dev, uint64_t ino);

/* holder.c */
int weir__holder_start(weir_stream *s);
void weir__holder_wait(struct weir__spill *spill); /* waits for the holder's exit */

/* replay.c: writes pending bytes to their sink. Must not allocate or lock: it also runs in the holder, a
 * child of clone(2). */
struct weir__spill_image { /* an opened and locked file of a dead owner */
    int fd;
    uint64_t size;
    struct weir__spill_file file; /* copy of the header: a mapping could be truncated by others */
};
struct weir__target {
    int fd;
    int read_fd;           /* the same file, for comparison; -1: not readable */
    bool same_file;        /* the file is the owner's sink */
    bool same_description; /* and the open file description is the owner's */
};
int weir__spill_load(struct weir__spill_image *image, int fd);
void weir__spill_describe(const struct weir__spill_image *image, struct weir_recovered *found);
int weir__replay(struct weir__spill_image *image, const struct weir__target *target,
                 struct weir_recovered *found);
bool weir__is_same_sink(const struct weir__spill_image *image, int fd);
int weir__reopen(int fd, int oflags); /* opens a descriptor's file with other flags */
bool weir__owner_maps(const struct weir__spill_image *image, uint64_t ino);

#endif /* WEIR_SPILL_H */
