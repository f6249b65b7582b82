/* subject.h: a stream over a file in memory, and beside it what must be true of both. Each step makes one
 * call, says what the call accepted or gave, and compares: what is in the file, and behind it what waits in
 * the buffer, is exactly what was accepted; what was read is what the file has. */
#ifndef WEIR_TESTS_SUBJECT_H
#define WEIR_TESTS_SUBJECT_H

#include "../../src/private.h"
#include "check.h"
#include "fake_kernel.h"

enum op {
    OP_PUTC, OP_NEWLINE, OP_WRITE, OP_WRITEV, OP_PRINTF, OP_PUT_STR, OP_PUT_NUMBER, OP_PUTREC, OP_ENDREC,
    OP_RESERVE, OP_FLUSH, OP_SYNC, OP_SYNC_WHOLE,
    OP_GETC, OP_READ, OP_READ_SOME, OP_GETREC, OP_PEEK, OP_SKIP, OP_UNGETC,
    OP_SEEK, OP_SEEK_BY, OP_SEEK_END, OP_TELL, OP_FILENO, OP_SET_MODE, OP_SHARE, OP_CLEAR,
    OPS
};

enum { PUSHED_MAX = 64 };

struct subject {
    weir_stream *s;
    struct fake_file file;
    int fd;
    bool can_read, can_write, seekable, append;
    struct weir_options options;
    struct weir__state *state;
    struct weir__config *config;

    unsigned char *image; /* the file as it will be when everything has arrived */
    size_t size, room;
    int64_t at;           /* the program's position: of a file, or in what a pipe or terminal will give */
    unsigned char pushed[PUSHED_MAX]; /* by weir_ungetc, the last one is read first */
    size_t pushed_count;
    uint64_t made;        /* bytes of text that were made up */
    bool spoilt;          /* what the plan does is more than a short count or EINTR, which nobody must notice */
    bool excused;         /* bytes wait that an error, now cleared, had left */
    int sync_failed;      /* a sync has: none may say 0 again */
    uint64_t failures;    /* checks that went wrong */
    char log[4096];       /* the steps */
};

/* Opens the stream over a file of `kind` that holds `content` (or, of a pipe …, gives it). Returns 0, or
 * what weir_fdopen did. */
int subject_open(struct subject *t, enum fake_kind kind, int oflags, const struct weir_options *options,
                 const char *content, size_t bytes);
/* One call. Returns what the call did. */
int64_t subject_step(struct subject *t, enum op op, uint64_t argument);
/* Closes it; everything accepted must have arrived unless an error of writing stood (returned). */
int subject_close(struct subject *t);
void subject_free(struct subject *t);
/* Nothing is spoilt any more, and what waited goes out. */
void subject_heal(struct subject *t);

const char *op_name(enum op op);
bool subject_wrong(struct subject *t, const char *format, ...) CHECK_PRINTF(2); /* returns false */

/* For subject_write.c and subject_read.c: */
int64_t subject_write_step(struct subject *t, enum op op, uint64_t argument);
int64_t subject_read_step(struct subject *t, enum op op, uint64_t argument);
void subject_accept(struct subject *t, const void *bytes, size_t count);
/* The next byte to be read, `ahead` of the position, or -1 at the end. */
int subject_coming(const struct subject *t, size_t ahead);
/* Calls of the kernel were spoilt: errors and short counts are right. */
bool subject_may_fail(const struct subject *t);
/* An error that a call may return now. */
bool subject_error_is_right(struct subject *t, int64_t result, enum op op);

#endif /* WEIR_TESTS_SUBJECT_H */
