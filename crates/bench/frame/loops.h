/*
 * The loops, once: a method gives its own "get" and "put", and every workload is made of them. All of it
 * is inlined into the method's transfer with get and put known, so what is left is the loop that one
 * would write by hand (bench-harness measures that it is).
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
    void *own;           /* the run's */
    uint64_t gets, puts; /* system calls made; for wb_loop() to report */
};

/* Gets up to `bytes` from offset `at` of the input: how many, 0 at its end, -1 after wb_fail(). */
typedef ssize_t wb_get(struct wb_io *io, unsigned char *to, size_t bytes, uint64_t at);
/* Puts all of `bytes` at offset `at` of the output; 0, or -1 after wb_fail(). */
typedef int wb_put(struct wb_io *io, const unsigned char *from, size_t bytes, uint64_t at);

WB_INLINE size_t wb_pass(uint64_t left, uint64_t most)
{
    return (size_t)(left < most ? left : most);
}

/* WB_COPY, WB_TRANSLATE (map: not NULL) and WB_READ (put: NULL). */
WB_INLINE int wb_loop_through(struct wb_io *io, wb_get *get, wb_put *put, const unsigned char *map,
                              const char *get_call)
{
    struct wb_run *run = io->run;
    unsigned char *const record = run->record;
    const uint64_t bytes = run->job->bytes, most = run->pass_bytes;
    uint64_t moved = 0, passes = 0;
    while (moved < bytes) {
        const ssize_t got = get(io, record, wb_pass(bytes - moved, most), moved);
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
        (void)get(io, record, most, moved);
    return wb_moved(run, moved, passes, get_call);
}

/* WB_WRITE and WB_LOG. */
WB_INLINE int wb_loop_text(struct wb_io *io, wb_put *put, const char *put_call)
{
    struct wb_run *run = io->run;
    const unsigned char *const text = run->record;
    const uint64_t bytes = run->job->bytes, most = run->pass_bytes, mask = run->text_mask;
    uint64_t moved = 0, passes = 0;
    while (moved < bytes) {
        const size_t wanted = wb_pass(bytes - moved, most);
        if (put(io, text + (moved & mask), wanted, moved) != 0)
            break;
        moved += wanted;
        passes++;
        if (wb_passed(run, moved) != 0)
            break;
    }
    return wb_moved(run, moved, passes, put_call);
}

/* The job's workload by these two, whose system calls are called get_call and put_call; kernel_counted
 * methods leave io.gets and io.puts at 0. */
WB_INLINE int wb_loop(struct wb_run *run, wb_get *get, wb_put *put, const char *get_call,
                      const char *put_call)
{
    struct wb_io io = {.run = run, .in = run->in, .out = run->out, .own = run->own};
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

/* Moves up to `bytes` from input to output within the kernel: how many, 0 at its end, -1 after a failure. */
typedef ssize_t wb_move(struct wb_io *io, size_t bytes);

/* WB_COPY where the bytes do not come here; the calls are named as for wb_loop(), NULL for none. */
WB_INLINE int wb_loop_move(struct wb_run *run, wb_move *move, const char *get_call, const char *put_call)
{
    struct wb_io io = {.run = run, .in = run->in, .out = run->out, .own = run->own};
    const uint64_t bytes = run->job->bytes, most = run->pass_bytes;
    uint64_t moved = 0, passes = 0;
    while (moved < bytes) {
        size_t left = wb_pass(bytes - moved, most);
        ssize_t got;
        do { /* a record that is moved in part (up to the end of a shared block, of a pipe) is continued */
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
        (void)move(&io, most);
    wb_count(run, get_call, io.gets);
    wb_count(run, put_call, io.puts);
    return wb_moved(run, moved, passes, get_call);
}

/* Shared by the methods that copy within the kernel. */
#define WB_MOVE_REASON "it moves bytes from file to file only; no byte of them comes to the program"
#define WB_MOVE_SYNCS (WB_ALL_SYNCS & ~WB_BIT(WB_SYNC_RWF_DSYNC))
#define WB_MOVE_SYNC_REASON "the call has no flag that syncs what it moved"

#endif
