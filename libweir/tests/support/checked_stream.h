/* checked_stream.h: a stream over a fake file, with a model of both. Each step makes one call, adds what the call
 * accepted or returned to the model, and compares: the file followed by the pending bytes is exactly what was
 * accepted, and the bytes read are those of the file. */
#ifndef WEIR_TESTS_CHECKED_STREAM_H
#define WEIR_TESTS_CHECKED_STREAM_H

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

struct checked_stream {
    weir_stream *s;
    struct fake_file file;
    int fd;
    bool can_read, can_write, seekable, append;
    struct weir_options options;
    struct weir__state *state;
    struct weir__config *config;

    unsigned char *expected; /* the file's content after all accepted bytes are written */
    size_t expected_size, expected_capacity;
    int64_t position;     /* the program's: in the file, or in the input of a pipe or terminal */
    unsigned char pushed[PUSHED_MAX]; /* by weir_ungetc; the last one is read first */
    size_t pushed_count;
    uint64_t generated;   /* bytes of test text so far */
    bool fault_is_visible;  /* the fault may make calls fail: not only a short count or EINTR, which libweir hides */
    bool write_was_refused; /* a write to a stream that is open for reading only */
    bool error_was_cleared; /* the pending bytes include some that an error left and weir_clear kept */
    int sync_failed;      /* result of the first failed sync: no later sync may return 0 */
    uint64_t failures;    /* of checks */
    char log[4096];       /* the steps */
};

/* Opens the stream over a fake file of `kind` that contains `content`; for a pipe, terminal or socket, `content`
 * is what it delivers. Returns the result of weir_fdopen. */
int checked_open(struct checked_stream *t, enum fake_kind kind, int oflags, const struct weir_options *options,
                 const char *content, size_t bytes);
/* Makes one call. Returns its result. */
int64_t checked_step(struct checked_stream *t, enum op op, uint64_t argument);
/* Closes the stream and checks that every accepted byte is in the file, or that the call reports the loss. Returns
 * the result of weir_close_lost. */
int checked_close(struct checked_stream *t);
void checked_free(struct checked_stream *t);
/* Ends all faults, clears the stream's error and flushes. */
void checked_remove_faults(struct checked_stream *t);

const char *op_name(enum op op);
/* Reports a failed check with the steps that led to it. Returns false. */
bool checked_fail(struct checked_stream *t, const char *format, ...) CHECK_PRINTF(2);

/* For checked_stream_write.c and checked_stream_read.c: */
int64_t checked_write_step(struct checked_stream *t, enum op op, uint64_t argument);
int64_t checked_read_step(struct checked_stream *t, enum op op, uint64_t argument);
/* Adds `count` accepted bytes to the expected content. */
void checked_accept(struct checked_stream *t, const void *bytes, size_t count);
/* Returns the byte that a read finds `ahead` bytes after the position, or -1 at the end. */
int checked_next_byte(const struct checked_stream *t, size_t ahead);
/* Returns true if a fault has hit a call, so that errors and short counts are correct. */
bool checked_may_fail(const struct checked_stream *t);
/* Returns true if `op` may return `result` now; else reports a failure. */
bool checked_error_allowed(struct checked_stream *t, int64_t result, enum op op);

#endif /* WEIR_TESTS_CHECKED_STREAM_H */
