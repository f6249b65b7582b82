/*
 * The loops of all workloads, made of a "get" and a "put" that each method supplies. They are inlined into
 * the method's transfer with constant get and put, so the result is the loop that one would write by hand
 * (make bench-harness verifies it).
 */
#ifndef WEIR_BENCH_LOOPS_H
#define WEIR_BENCH_LOOPS_H

#include <sys/types.h>

#include "method.h"

#if defined(__GNUC__)
#define WB_INLINE static inline __attribute__((always_inline))
#else
#define WB_INLINE static inline
#endif

/* Arguments and counts of get and put. A local of the loop: the counts live in registers. */
struct wb_io {
    struct wb_run *run;
    int in, out;
    void *method_data;   /* copied from the run */
    uint64_t gets, puts; /* system calls made; for wb_loop() to report */
};

/* Gets up to `bytes` from offset `at` of the input; returns their number, 0 at the end, -1 after wb_fail(). */
typedef ssize_t wb_get(struct wb_io *io, unsigned char *to, size_t bytes, uint64_t at);
/* Puts all of `bytes` at offset `at` of the output; returns 0, or -1 after wb_fail(). */
typedef int wb_put(struct wb_io *io, const unsigned char *from, size_t bytes, uint64_t at);

WB_INLINE size_t wb_pass_length(uint64_t left, uint64_t pass_bytes)
{
    return (size_t)(left < pass_bytes ? left : pass_bytes);
}

/* Runs WB_COPY, WB_TRANSLATE (map: not NULL) or WB_READ (put: NULL). */
WB_INLINE int wb_loop_through(struct wb_io *io, wb_get *get, wb_put *put, const unsigned char *map,
                              const char *get_call)
{
    struct wb_run *run = io->run;
    unsigned char *const record = run->record;
    const uint64_t bytes = run->job->bytes, pass_bytes = run->pass_bytes;
    uint64_t moved = 0, passes = 0;
    while (moved < bytes) {
        const ssize_t got = get(io, record, wb_pass_length(bytes - moved, pass_bytes), moved);
        if (got <= 0)
            break;
        for (ssize_t i = 0; map && i < got; i++)
            record[i] = map[record[i]];
        if (put && put(io, record, (size_t)got, moved) != 0)
            break;
        moved += (uint64_t)got;
        passes++;
        if (wb_passed(run, moved) != 0)
            break;
    }
    if (moved == bytes && run->to_end && run->result->status == WB_OK)
        (void)get(io, record, pass_bytes, moved);
    return wb_moved(run, moved, passes, get_call);
}

/* Runs WB_WRITE or WB_LOG. */
WB_INLINE int wb_loop_text(struct wb_io *io, wb_put *put, const char *put_call)
{
    struct wb_run *run = io->run;
    const unsigned char *const text = run->record;
    const uint64_t bytes = run->job->bytes, pass_bytes = run->pass_bytes, mask = run->text_mask;
    uint64_t moved = 0, passes = 0;
    while (moved < bytes) {
        const size_t wanted = wb_pass_length(bytes - moved, pass_bytes);
        if (put(io, text + (moved & mask), wanted, moved) != 0)
            break;
        moved += wanted;
        passes++;
        if (wb_passed(run, moved) != 0)
            break;
    }
    return wb_moved(run, moved, passes, put_call);
}

/* Runs the job's workload with `get` and `put`. get_call and put_call name their system calls; methods with
 * kernel_counted leave io.gets and io.puts at 0. */
WB_INLINE int wb_loop(struct wb_run *run, wb_get *get, wb_put *put, const char *get_call,
                      const char *put_call)
{
    struct wb_io io = {.run = run, .in = run->in, .out = run->out, .method_data = run->method_data};
    int rc = -1;
    switch (run->job->workload) {
    case WB_COPY:
        rc = wb_loop_through(&io, get, put, NULL, get_call);
        break;
    case WB_TRANSLATE:
        rc = wb_loop_through(&io, get, put, run->map, get_call);
        break;
    case WB_READ:
        rc = wb_loop_through(&io, get, NULL, NULL, get_call);
        break;
    default: /* WB_WRITE, WB_LOG */
        rc = wb_loop_text(&io, put, put_call);
        break;
    }
    wb_count(run, get_call, io.gets);
    wb_count(run, put_call, io.puts);
    return rc;
}

/* Moves up to `bytes` from input to output within the kernel; returns their number, 0 at the input's end, -1
 * after a failure. */
typedef ssize_t wb_move(struct wb_io *io, size_t bytes);

/* Runs WB_COPY without copying the bytes to user space; the calls are named as for wb_loop(), NULL for none. */
WB_INLINE int wb_loop_move(struct wb_run *run, wb_move *move, const char *get_call, const char *put_call)
{
    struct wb_io io = {.run = run, .in = run->in, .out = run->out, .method_data = run->method_data};
    const uint64_t bytes = run->job->bytes, pass_bytes = run->pass_bytes;
    uint64_t moved = 0, passes = 0;
    while (moved < bytes) {
        size_t left = wb_pass_length(bytes - moved, pass_bytes);
        ssize_t got;
        do { /* continues a record that was moved in part (the end of a shared block, a full pipe) */
            got = move(&io, left);
            if (got <= 0)
                break;
            moved += (uint64_t)got;
            left -= (size_t)got;
        } while (left > 0);
        if (got <= 0)
            break;
        passes++;
        if (wb_passed(run, moved) != 0)
            break;
    }
    if (moved == bytes && run->to_end && run->result->status == WB_OK)
        (void)move(&io, pass_bytes);
    wb_count(run, get_call, io.gets);
    wb_count(run, put_call, io.puts);
    return wb_moved(run, moved, passes, get_call);
}

/* Shared by the methods that copy within the kernel. */
#define WB_MOVE_REASON "it only moves bytes from file to file; the program never has them"
#define WB_MOVE_SYNCS (WB_ALL_SYNCS & ~WB_BIT(WB_SYNC_RWF_DSYNC))
#define WB_MOVE_SYNC_REASON "the call has no flag that syncs the bytes it moves"

#endif
