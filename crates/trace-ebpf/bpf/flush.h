/* flush.h: emits and deletes the counters of streams that end, by close(2), execve(2) or exit. */
#ifndef WEIR_FLUSH_H
#define WEIR_FLUSH_H

#include "counters.h"

#define ALL_LOW_FDS (~0ULL)

/* Flushes one direction of a descriptor. */
int flush_stream(u32 pid, u32 fd, u32 writes);

/* Flushes the descriptors below LOW_FDS whose bits are set in `fds`. */
#ifdef BEFORE_6_1
int flush_low_fds_of(u32 pid, u64 fds);
#define flush_low_fds(process, ...) flush_low_fds_of(__VA_ARGS__)
#else
int flush_low_fds(const struct process_state *process, u32 pid, u64 fds);
#endif

/* Flushes the descriptors from `first` to `last`, inclusive. */
#ifdef BEFORE_6_1
int flush_range_of(u32 pid, u32 first, u32 last);
#define flush_range(process, ...) flush_range_of(__VA_ARGS__)
#else
int flush_range(const struct process_state *process, u32 pid, u32 first, u32 last);
#endif

static __always_inline void flush_fd(const struct process_state *process, u32 pid, u32 fd)
{
    for (u32 writes = 0; writes < 2; writes++)
        if (fd >= LOW_FDS || process->fd_bits[writes] >> fd & 1)
            flush_stream(pid, fd, writes);
}

/* A set of descriptors below LOW_FDS, for bpf_loop(). */
struct low_fds {
    u64 left;
    u32 pid, writes;
};

/* Removes the lowest descriptor from the set and returns it. */
static __always_inline u32 take_lowest_fd(struct low_fds *fds)
{
    u64 lowest = fds->left & -fds->left, below = lowest - 1;
    fds->left ^= lowest;
    return below >> 32 ? 32 + popcount(below >> 32) : popcount(below);
}

#endif
