/* kill_plan.h: a made-up series of calls for a kill-safe stream, and what the sink must look like after any
 * number of its bytes. */
#ifndef WEIR_TESTS_KILL_PLAN_H
#define WEIR_TESTS_KILL_PLAN_H

#include "kill.h"

enum { PLAN_BYTES = 8192, PLAN_STEPS = 128, PLAN_IMAGE = 16384 };

enum plan_sink { PLAN_PLAIN, PLAN_APPEND, PLAN_LOCKED, PLAN_PIPE, PLAN_SINKS };

enum plan_op {
    PLAN_PUTC, PLAN_WRITE, PLAN_WRITEV, PLAN_PRINTF, PLAN_NUMBER, PLAN_COMMIT, PLAN_PUTREC, PLAN_ENDREC,
    PLAN_FLUSH, PLAN_SEEK, PLAN_FILENO, PLAN_MODE, PLAN_OPS
};

struct plan_step {
    enum plan_op op;
    size_t from, bytes; /* of plan->bytes */
    size_t done;        /* so many bytes are complete when it has returned */
    int64_t argument;   /* the position, the number, or mode and buffer */
};

struct plan {
    enum plan_sink sink;
    struct weir_options options;
    struct plan_step steps[PLAN_STEPS];
    int count;
    char bytes[PLAN_BYTES];
    int64_t at[PLAN_BYTES]; /* its position in the file */
    size_t total;
    char before[256]; /* what the file has already */
    size_t before_bytes;
    /* while it is made: */
    struct random random;
    int64_t position;
    size_t done;
    enum weir_mode mode;
};

/* In memory that is shared with the child which runs the plan. */
struct plan_progress {
    _Atomic size_t begun, done; /* bytes of the calls that were begun; that must be there */
    _Atomic int failed;         /* the step that was, from 1 on */
};

extern const char *const plan_sink_names[PLAN_SINKS];

void plan_make(struct plan *plan, enum plan_sink sink, enum weir_mode mode, size_t buffer_bytes, int steps,
               uint64_t seed);
/* Opens the stream on `path`, or on descriptor `fd` if it is a pipe. */
int plan_open(const struct plan *plan, weir_stream **s, const char *path, int fd);
/* Returns how many steps were well. */
int plan_run(const struct plan *plan, weir_stream *s, struct plan_progress *progress);
/* The sink when it has the first `count` bytes. Returns its size. */
size_t plan_image(const struct plan *plan, size_t count, char *image);
/* Is it the image after `least` to `most` bytes? Returns how many, or -1. */
int64_t plan_matches(const struct plan *plan, size_t least, size_t most, const char *have, size_t bytes);

#endif /* WEIR_TESTS_KILL_PLAN_H */
