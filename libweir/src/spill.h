/* spill.h: the file in which a WEIR_KILL stream keeps its buffer, and what a kill leaves in it. Private.
 *
 * THE FILE is a struct weir__spill_file, padded to whole pages, and behind it the buffer. The owner has all
 * of it in a shared mapping (MADV_DONTFORK: a forked child has none of it and makes a file of its own when
 * it first writes). It gets its name when it is complete and locked, so that nobody ever finds half of one.
 * All its blocks are there from the start: a full file system is an error of weir_open, never a SIGBUS.
 *
 * WHO LIVES. The owner holds a POSIX record lock on the file: a child does not inherit it, and it ends with
 * the process, with exec (the descriptor is close-on-exec) or with weir_close. Whoever gets an OFD lock may
 * take over, after a look at /proc/PID/maps: an owner that closed descriptors that are not its own has lost
 * its lock as well, but it still maps the file. A pid that was given to another process fools nobody.
 *
 * THE ORDER OF STORES. Every store below is one aligned 64-bit store with release order, so that a kill
 * leaves the effect of all before some instruction and of none behind it:
 *   append   the bytes; written += bytes
 *   drain    flight.from = NONE; origin; flight.end, .bytes, .total; flight.from = drained;
 *            write(2); drained += what it took of the buffer; origin += what it took of other bytes;
 *            flight.from = NONE
 *   reset    (drained == written) written = 0; origin += bytes; drained = 0
 * Bytes wait only while drained < written. `origin` is the position in the sink of buffer offset 0: the
 * position of the next byte, origin + drained, is right whenever bytes wait, since everything that breaks
 * it happens while none do. It is looked up again before the first byte and before each write, because who
 * shares the descriptor may have moved it. A flight is one write(2) that may have happened: it counts
 * only while flight.from == drained.
 *
 * WHAT EACH SINK IS PROMISED after a kill between any two instructions, also of weir_recover itself:
 *   PLAIN   (a file that is not O_APPEND, a block device) exactly once: the bytes go to their position,
 *           where a write that happened has put the same ones. Should others have written there meanwhile,
 *           into what was no part of the file before, theirs stay, and ours go behind the file's end.
 *   APPEND  (O_APPEND, WEIR_LOCK_FILE) exactly once if nobody else wrote to the file between the owner's last
 *           write and the recovery: its growth since flight.end is what the write did, if these bytes are
 *           the ones in the buffer. If they are not, at least once: the flight is repeated.
 *   FLOW    (pipes, sockets, terminals, and any other descriptor that weir_recover is given) at least
 *           once: at most one flight is repeated.
 * Only PLAIN and APPEND can be opened again by their path, and a FIFO; others need a descriptor. */
#ifndef WEIR_SPILL_H
#define WEIR_SPILL_H

#include "private.h"

#define WEIR_SPILL_MAGIC UINT64_C(0x6c69707372696577) /* "weirspil" in memory */
#define WEIR_SPILL_LAYOUT 1
#define WEIR_SPILL_NONE UINT64_MAX
#define WEIR_SPILL_PATH 4096

enum weir__spill_kind { WEIR_SPILL_POSITIONED, WEIR_SPILL_APPEND, WEIR_SPILL_SEQUENTIAL };

/* Never changes; `seal` below is its sum. */
struct weir__spill_sink {
    uint64_t dev, ino;
    uint64_t btime; /* ns; 0: not known. A new file may have the inode number of one that was removed */
    uint32_t type; /* S_IFMT of its mode */
    uint32_t kind;
    uint32_t lock; /* WEIR_LOCK_FILE: written under a lock on the whole file */
    int32_t separator;
    char path[WEIR_SPILL_PATH]; /* absolute, or "": it has none */
};

/* A write(2) that may have happened. */
struct weir__inflight {
    uint64_t from;  /* buffer offset; NONE: there is none */
    uint64_t bytes; /* of the buffer */
    uint64_t total; /* these and what went with them */
    uint64_t end;   /* the file's size when last looked at; NONE: not known */
};

struct weir__spill_file {
    struct weir_head head;
    uint64_t magic;
    uint32_t layout;
    uint16_t released; /* the owner closes the stream: its holder has nothing to do */
    uint16_t holder_ready; /* the holder is there */
    uint64_t buffer_at; /* from the start of the file */
    uint64_t origin;
    struct weir__inflight inflight;
    uint64_t mode; /* enum weir_mode */
    uint64_t checksum;
    struct weir__spill_sink sink;
};

/* What the owner knows of its file. Without a mapping the stream has none at the moment: a child's, or that
 * of one who was about to exec; the next append makes it. */
struct weir__spill {
    struct weir__spill_file *file; /* the mapping, or NULL */
    size_t mapped;
    size_t capacity; /* for the file to come */
    int fd;          /* holds the lock; -1: none */
    uint64_t dev, ino;
    int holder;       /* its pid, or 0 */
    bool wants_holder;
    bool anonymous;   /* after exit(3): plain memory, nobody could recover it for long */
    int first_pid;    /* who may use the name that was asked for */
    char requested_path[WEIR_SPILL_PATH]; /* weir_options.spill, absolute; or "" */
    char path[WEIR_SPILL_PATH];
};

/* spill.c */
int weir__spill_identify(int fd, struct weir__spill_sink *sink); /* dev, ino, born and type */

/* spill_file.c: making, naming and removing the file */
int weir__spill_create(struct weir__spill *spill, size_t buffer_bytes, const struct weir__spill_sink *sink);
int weir__spill_make_absolute(char *path, size_t bytes);
int weir__spill_allocate_blocks(int fd, uint64_t bytes);
uint64_t weir__spill_checksum(const struct weir__spill_sink *sink);
void weir__spill_unlink(const char *path, uint64_t dev, uint64_t ino);

/* holder.c */
int weir__holder_start(weir_stream *s);
void weir__holder_wait(struct weir__spill *spill); /* until it has gone; the file is released */

/* replay.c: what waits, to its sink. Nothing here allocates or locks: the holder is a child of clone(2). */
struct weir__spill_image { /* an opened and locked file of a dead owner */
    int fd;
    uint64_t size;
    struct weir__spill_file file; /* a copy of its beginning: no map of a file that others may truncate */
};
struct weir__target {
    int fd;
    int read_fd;           /* the same file, to compare; -1: it cannot be read */
    bool same_file;        /* it is the sink that the owner had */
    bool same_description; /* even its open file description: the position tells */
};
int weir__spill_load(struct weir__spill_image *image, int fd);
void weir__spill_describe(const struct weir__spill_image *image, struct weir_recovered *found);
int weir__replay(struct weir__spill_image *image, const struct weir__target *target,
                 struct weir_recovered *found);
bool weir__is_same_sink(const struct weir__spill_image *image, int fd);
int weir__reopen(int fd, int oflags); /* the file of a descriptor, with other flags */
bool weir__owner_maps(const struct weir__spill_image *image, uint64_t ino);

#endif /* WEIR_SPILL_H */
