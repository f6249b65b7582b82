/* gather.h: gathers tiny reads and writes without an effect that another process can see.

   A session is the time in which the library holds bytes: written bytes that the kernel has not seen, or read-ahead
   bytes that the program has not got. During a session the selector byte says BLOCK, and the kernel sends every
   system call from outside of this library to dispatch_x86_64.c, which ends the session and lets the program make the
   call. A session belongs to the only thread of its process; a process with a second thread has no sessions.

   The fast paths in calls.c run with signals unmasked and without a lock. All other code of a session masks
   signals. */
#ifndef WEIR_GATHER_H
#define WEIR_GATHER_H

#include "arena.h"
#include "config.h"
#include "page_access.h"
#include "sys.h"

/* KIND_NULL accepts bytes and discards them. KIND_SOURCE produces bytes and never blocks. */
enum target_kind { KIND_OTHER = 0, KIND_FILE, KIND_PIPE, KIND_TERMINAL, KIND_SOCKET, KIND_NULL, KIND_SOURCE };

/* The properties of a descriptor. They hold for a session, because any call that could change them ends it. */
struct target {
    int fd;
    enum target_kind kind;
    int access; /* O_RDONLY, O_WRONLY or O_RDWR */
    uint32_t room, limit; /* the most bytes gathered, and the most bytes of one write */
    uint64_t dev, ino;
};
enum {
    MAX_TARGETS = 4,
    MAX_LATE_ERRORS = 16,
    MAX_READ_AHEAD = 65536,
    FIRST_READ_AHEAD = 1024,
    MAX_CALL_BYTES = 1024, /* larger calls are not gathered */
    WARMUP_CALLS = 8,      /* tiny calls before a session begins */
};

/* The whole struct is in one page that the kernel zeroes in a forked child. All zero: no session. */
struct session {
    volatile unsigned char selector;     /* read by the kernel: 0 permits calls, 1 sends them to the handler */
    volatile unsigned char in_fast_path; /* a fast path is changing the region */
    unsigned char prepared;              /* region and thread are set */
    unsigned char no_read_ahead;         /* another process has moved a shared offset */
    void *volatile wait_frame;           /* the frame of a flush that waits for room; handlers may run meanwhile */
    volatile uint32_t fast_write_max;    /* fast path of write: n - 1 < fast_write_max is false without a session */
    volatile uint32_t fast_read_max;     /* the same for read */
    volatile int out_fd, in_fd;
    uint32_t out_room;
    uint32_t writes_before, reads_before; /* the region's call counts at the begin of the session */
    struct weir_region *region;
    char *in_bytes;             /* MAX_READ_AHEAD bytes */
    long process;               /* the owner of this memory; 0: not known yet */
    long thread;                /* the only thread that may gather */
    uint32_t direct_calls;      /* tiny calls since the last session */
    uint32_t extra_warmup;      /* more warm-up calls, after sessions that gathered few calls */
    uint32_t read_ahead_bytes;  /* grows while the program uses them up */
    struct late_error {
        int fd; /* the descriptor (+ 1) of a failed flush, whose next call gets the error; 0 in a free entry */
        int error;
        uint64_t dev, ino;
    } late_errors[MAX_LATE_ERRORS];
    int late_errors_count;
    int source_fd;              /* a KIND_SOURCE descriptor (+ 1): reads of it reveal nothing */
    int readable_fd;            /* a pipe, terminal or socket (+ 1) with at least `readable_bytes` to read */
    int64_t readable_bytes;
    struct target out, in;
    struct target targets[MAX_TARGETS];
    int targets_count;
    struct noted_pages readable, writable; /* of this session */
};
_Static_assert(sizeof(struct session) <= 4096, "one page");
extern struct session *session;

/* Allocates the session's page. The first session does the rest. */
void gather_start(void);
enum { NOT_DONE = 0, DONE = 1, DONE_RAW = 2 };
/* Handle a call that the fast paths do not take. *done is then NOT_DONE: make the call through the C library;
   DONE: the kernel's result is returned; DONE_RAW: make the system call itself. */
long gather_write(int fd, const void *from, size_t n, int *done);
long gather_read(int fd, void *to, size_t n, int *done);
/* Counts a writev as a tiny call. Returns true if its parts should be read; session->readable then holds for them. */
int gather_wants_parts(void);
#if WEIR_HAS_DISPATCH
/* Returns true for a read that cannot block or reveal the delay, so that gathered bytes stay. */
static inline int gather_permits_read(int fd) { return session->selector && session->source_fd == fd + 1; }
/* Ends the session before an action that would not go through the handler. */
void gather_end_now(void);
/* Forgets which pages the program can access. */
static inline void gather_forget_pages(void) {
    pages_forget(&session->readable);
    pages_forget(&session->writable);
}
#else
static inline int gather_permits_read(int fd) { return (void)fd, 0; }
static inline void gather_end_now(void) {}
static inline void gather_forget_pages(void) {}
#endif
/* Turns gathering off for the rest of the process, for example because the program handles SIGSYS itself. */
void gather_disable(void);
/* seccomp.c: returns whether a system call with this first argument restricts later calls, or permits such a restriction. */
int seccomp_is_restriction(long call, long option);
/* Ends a session: writes gathered bytes, returns read-ahead bytes, permits calls. Signals are masked; `mask` is the
   program's mask for waiting. Returns false if a signal interrupted the wait for room and `patient` is false. */
int gather_end(const uint64_t *mask, int patient);
/* late_errors.c. gather_take_late_error returns the late error of this descriptor once, else 0. gather_forget_late_errors
   forgets those of descriptors that are closed. gather_note_late_error keeps the error of a failed flush of the session's
   output. The first error of a descriptor stays. */
#if WEIR_HAS_DISPATCH
static inline int gather_has_late_errors(void) { return session->late_errors_count != 0; }
int gather_take_late_error(int fd);
void gather_forget_late_errors(unsigned first, unsigned last);
#else
static inline int gather_has_late_errors(void) { return 0; }
static inline int gather_take_late_error(int fd) { return (void)fd, 0; }
static inline void gather_forget_late_errors(unsigned first, unsigned last) { (void)first, (void)last; }
#endif
int gather_has_late_error(int fd);
void gather_note_late_error(int error);

/* region.c. Signals are masked. region_lock waits for weir's timer; a lock that this process has left at an exec is its own. */
void region_lock(struct weir_region *region);
void region_unlock(struct weir_region *region);
int region_flush(const uint64_t *mask, int patient);
int region_has_room(const struct target *out);
void region_return_read_ahead(void);
long region_read_ahead(int fd, uint32_t want);
static inline int region_pending(const struct weir_region *region) {
    return region && region->drained < (uint32_t)region->head;
}
/* session_setup.c: prepares the first session of a process. Returns false if the process cannot gather. */
int session_setup(void);
/* targets.c: returns a descriptor's properties, which it reads once a session; null if there is no free entry. */
struct target *target_of(int fd);
static inline int target_same(const struct target *a, const struct target *b) {
    return a->kind == KIND_FILE && b->kind == KIND_FILE && a->dev == b->dev && a->ino == b->ino;
}
#endif
