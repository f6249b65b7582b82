/* counters.h: counts a call that moves bytes in its stream. */
#ifndef WEIR_COUNTERS_H
#define WEIR_COUNTERS_H

#include "maps.h"

#define EBADF_ 9
#define EINTR_ 4
#define EAGAIN_ 11
#define BLOCK_MASK 4095

/* Descriptors below this have a bit each in process_state.fd_bits. */
enum { LOW_FDS = 64 };

/* Counts a call of any kind; creates the stream at its first call. */
#ifdef BEFORE_6_1
int count_current_call(void);
#define count_call(transfer) count_current_call()
#else
int count_call(const struct transfer *t);
#endif

/* The number of set bits. Clang has no BPF instruction for it and would emit a libcall. */
static __always_inline u32 popcount(u32 n)
{
    n -= (n >> 1) & 0x55555555;
    n = (n & 0x33333333) + ((n >> 2) & 0x33333333);
    return (((n + (n >> 4)) & 0x0f0f0f0f) * 0x01010101) >> 24;
}

/* The number of significant bits of `size`, at most 31. It sets all bits below the highest and counts them: branches
 * would multiply the paths that the verifier follows. */
static __always_inline u32 size_slot(u64 size)
{
    u32 n = size < 1U << 31 ? size : (1U << 31) - 1;
    n |= n >> 1;
    n |= n >> 2;
    n |= n >> 4;
    n |= n >> 8;
    n |= n >> 16;
    return popcount(n);
}

static __always_inline void count_size(struct stream_counters *counters, u32 slot, u64 moved)
{
    __sync_fetch_and_add(&counters->sizes[slot % SIZE_SLOTS], 1);
    if (moved > 1) /* slot 1 counts the bytes of one-byte calls */
        __sync_fetch_and_add(&counters->bytes, moved);
}

static __always_inline void count_position(struct stream_counters *counters, u64 moved, s64 position)
{
    u64 from = position < 0 ? counters->position : (u64)position, to = from + moved;
    if (from != counters->position)
        counters->jumps++;
    if ((from | to) & BLOCK_MASK)
        counters->unaligned++;
    if (from < counters->high_offset)
        counters->again_bytes += (to < counters->high_offset ? to : counters->high_offset) - from;
    if (to > counters->high_offset)
        counters->high_offset = to;
    counters->position = to;
}

/* Returns the last byte of the transfer; -1 if it cannot be read. */
static __always_inline int count_last_byte(struct stream_counters *counters, u64 address)
{
    u8 last = 0;
    if (bpf_probe_read_user(&last, 1, (void *)address) != 0)
        return -1;
    if (last == '\n')
        counters->newline_ends++;
    return last;
}

/* Sets last_ns. Reading the clock is a fifth of the cost of a counted call (measured), so within one tick of the kernel (1 to
 * 10 ms) only the first calls and every 32nd read it. */
enum { STAMPED_CALLS = 32 };
static __always_inline void stamp(struct stream_counters *counters)
{
    u32 tick = (u32)bpf_jiffies64();
    if (counters->tick != tick) {
        counters->tick = tick;
        counters->tick_calls = 0;
    }
    if (counters->tick_calls < STAMPED_CALLS || counters->tick_calls % STAMPED_CALLS == 0)
        counters->last_ns = bpf_ktime_get_ns();
    counters->tick_calls++;
}

/* The fast path of count_call(): a read(2) or write(2) that moved all requested bytes, on a stream whose first calls have been
 * emitted. Inlined, because returns from functions are slow on CPUs with Spectre mitigations. Returns whether it
 * counted the call. */
static __always_inline int count_full_transfer(u32 fd, u64 buffer, u64 requested_bytes, s64 result, u32 writes)
{
    struct stream_key key = {bpf_get_current_pid_tgid() >> 32, fd * 2 + writes};
    struct stream_counters *counters;
    if (result <= 0 || (u64)result != requested_bytes)
        return 0;
    counters = bpf_map_lookup_elem(&streams, &key);
    if (!counters || counters->stale || counters->emitted < FIRST_CALLS)
        return 0;
    tally(TALLY_CALLS);
    count_size(counters, size_slot(requested_bytes), requested_bytes);
    if (counters->regular)
        count_position(counters, requested_bytes, -1);
    if (writes && requested_bytes > 1 && buffer)
        count_last_byte(counters, buffer + requested_bytes - 1);
    if (requested_bytes > counters->max_requested_bytes)
        counters->max_requested_bytes = requested_bytes;
    stamp(counters);
    return 1;
}

#endif
