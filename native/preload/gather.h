/* gather.h: tiny reads and writes are gathered while nobody can see it.

   A session is the time in which bytes are held: written ones that are not out yet, or read ones that the program has
   not got yet. While it lasts, the selector byte says BLOCK, and every system call that is made outside this library
   arrives in dispatch.c, which ends the session and lets the call go on as if nothing had been. A session belongs to
   the one thread of its process; with a second thread there are none.

   The fast paths in calls.c run unmasked and without a lock; all else runs with signals masked. */
#ifndef WEIR_GATHER_H
#define WEIR_GATHER_H

#include "arena.h"
#include "config.h"
#include "sys.h"

/* KIND_NULL takes bytes and does nothing with them; KIND_SOURCE gives them and never waits. */
enum kind { KIND_OTHER = 0, KIND_FILE, KIND_PIPE, KIND_TERMINAL, KIND_SOCKET, KIND_NULL, KIND_SOURCE };

/* What a descriptor is, for as long as the session lasts: no call can change it meanwhile. */
struct target {
    int fd;
    enum kind kind;
    int access; /* O_RDONLY, O_WRONLY or O_RDWR */
    uint32_t room, limit; /* bytes gathered at most, and written in one piece at most */
    uint64_t dev, ino;
};
enum { TARGETS = 4, IN_BYTES = 65536, IN_FIRST = 1024, SMALL = 1024, WARM = 8, WAIT_MOST = 4096 };

/* All of it is in one page that the kernel wipes in a fork's child; all zero means: no session. */
struct session {
    volatile unsigned char selector; /* what the kernel looks at: 0 lets calls through, 1 sends them to dispatch */
    volatile unsigned char busy;     /* an append or a take of the fast path is under way */
    unsigned char prepared;          /* 1: region and task are set */
    unsigned char no_reading;        /* somebody else moved a shared offset: no more read-ahead */
    void *volatile waiting;          /* frame of a flush that waits for room: the session rests, handlers may run */
    volatile uint32_t out_small;     /* fast path of write: n - 1 < out_small is false without a session */
    volatile uint32_t in_small;      /* the same for read */
    volatile int out_fd, in_fd;
    uint32_t out_room;
    uint32_t first_out, first_in;    /* calls counted in the region when the session began */
    struct weir_region *region;
    char *in_bytes;                  /* IN_BYTES of read-ahead */
    long task;                       /* the one thread that may gather */
    uint32_t calls, penalty;         /* tiny calls let through; more of them after sessions that were not worth it */
    uint32_t in_want;                /* bytes to read ahead: grows while they are used up */
    int failed_fd, failed;           /* an error that came late, for the next call on that descriptor (+ 1) */
    int source_fd;                   /* /dev/zero or its like (+ 1): reads of it let nobody see anything */
    int credit_fd;                   /* a pipe, terminal or socket (+ 1) that held `credit` bytes when last asked */
    int64_t credit;
    struct target out, in;
    struct target targets[TARGETS];
    int targets_count;
};
extern struct session *session;


/* Once: nothing but memory; the rest is done by the first session. */
void gather_start(void);
enum { DONE_NOT = 0, DONE = 1, DONE_RAW = 2 };
/* What calls become that the fast paths do not take. *done afterwards: DONE_NOT, make the call through the C library;
   DONE, the kernel's result is returned; DONE_RAW, make the system call here. */
long gather_write(int fd, const void *from, size_t n, int *done);
long gather_read(int fd, void *to, size_t n, int *done);
#if WEIR_HAS_DISPATCH
/* True for a read that gathered bytes need not go out for, as it can neither wait nor be noticed. */
static inline int gather_passes(int fd) { return session->selector && session->source_fd == fd + 1; }
#else
static inline int gather_passes(int fd) { return (void)fd, 0; }
#endif
/* Ends a session from outside of a call that would. */
#if WEIR_HAS_DISPATCH
void gather_settle(void);
#else
static inline void gather_settle(void) {}
#endif
/* Never again in this process, for example because the program wants SIGSYS itself. */
void gather_never(void);
/* Every byte out, read-ahead given back, the door open. Signals are masked; `mask` is the program's, for waiting.
   False if a signal interrupted a flush that waits, and `patient` is false. */
int gather_end(const uint64_t *mask, int patient);
/* The error that came late for this descriptor, or 0; it is reported once. */
int gather_late_error(int fd);

/* region.c */
int region_flush(const uint64_t *mask, int patient);
int region_has_room(const struct target *out);
void region_give_back(void);
long region_read_ahead(int fd, uint32_t want);
static inline int region_pending(const struct weir_region *region) {
    return region && region->drained < (uint32_t)region->head;
}
/* prepare.c */
int prepare(void);
/* targets.c: looks once a session; null if no more fit */
struct target *target_of(int fd);
static inline int target_same(const struct target *a, const struct target *b) {
    return a->kind == KIND_FILE && b->kind == KIND_FILE && a->dev == b->dev && a->ino == b->ino;
}
#endif
