/* kill_plan.h: a random series of calls for a kill-safe stream, and the sink's expected content after any number of
 * its bytes. */
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
    size_t from, bytes; /* range of plan->bytes */
    size_t done;        /* bytes that must survive a kill after the call has returned */
    int64_t argument;   /* position, number, or mode << 32 | buffer size */
};

struct plan {
    enum plan_sink sink;
    struct weir_options options;
    struct plan_step steps[PLAN_STEPS];
    int count;
    char bytes[PLAN_BYTES];
    int64_t at[PLAN_BYTES]; /* position of each byte in the file */
    size_t total;
    char before[256]; /* content of the file at the start */
    size_t before_bytes;
    /* State of plan_make: */
    struct random random;
    int64_t position;
    size_t done;
    enum weir_mode mode;
};

/* In memory shared with the child that runs the plan. */
struct plan_progress {
    _Atomic size_t begun; /* bytes of all calls that have begun */
    _Atomic size_t done;  /* bytes that must survive a kill */
    _Atomic int failed;   /* number of the failed step, from 1 on; 0: none */
};

extern const char *const plan_sink_names[PLAN_SINKS];

void plan_make(struct plan *plan, enum plan_sink sink, enum weir_mode mode, size_t buffer_bytes, int steps,
               uint64_t seed);
/* Opens the stream on `path`, or on the descriptor `fd` if the sink is a pipe. */
int plan_open(const struct plan *plan, weir_stream **s, const char *path, int fd);
/* Runs the steps up to the first failure. Returns the number of successful steps. */
int plan_run(const struct plan *plan, weir_stream *s, struct plan_progress *progress);
/* Fills `image` with the sink's content after the first `count` bytes. Returns its size. */
size_t plan_image(const struct plan *plan, size_t count, char *image);
/* Returns the number of bytes, from `least` to `most`, after which the sink's content is `have`; -1 if none. */
int64_t plan_matches(const struct plan *plan, size_t least, size_t most, const char *have, size_t bytes);

#endif /* WEIR_TESTS_KILL_PLAN_H */
