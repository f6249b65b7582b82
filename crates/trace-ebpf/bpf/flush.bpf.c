/* flush.bpf.c: see flush.h. */
#include "flush.h"
#include "ring_buffer.h"

static __always_inline void delete_stream(struct stream_key *key)
{
    if (bpf_map_delete_elem(&streams, key) == 0)
        tally_by(TALLY_STREAMS, -1);
}

/* Moves the counters of a stream to a key that no descriptor has, because the ring buffer is full. weir reads them from the
 * map when the process exits. The next file of the descriptor gets counters of its own. */
#define DETACHED_KEY 0x80000000
static __always_inline int detach_counters(struct stream_key *key, struct stream_counters *counters)
{
    struct stream_key detached = {key->pid, DETACHED_KEY | (u32)(bpf_ktime_get_ns() >> 4)};
    struct process_state *process = bpf_map_lookup_elem(&processes, &key->pid);
    if (!process || bpf_map_update_elem(&streams, &detached, counters, BPF_NOEXIST) != 0)
        return 0; /* the map is full too: the counters are emitted with those of the descriptor's next file */
    tally_by(TALLY_STREAMS, 1);
    process->high_fds = 1;
    delete_stream(key);
    return 0;
}

GLOBAL_FUNCTION int flush_stream(u32 pid, u32 fd, u32 writes)
{
    struct stream_key key = {pid, fd * 2 + writes};
    struct stream_counters *counters = bpf_map_lookup_elem(&streams, &key);
    if (!counters)
        return 0;
    if (counters->stale && !counters->wait_ns) { /* nothing was counted since the sampling gap */
        delete_stream(&key);
        return 0;
    }
    struct stream_counters *event = reserve(sizeof *event);
    if (!event)
        return detach_counters(&key, counters);
    __builtin_memcpy(event, counters, sizeof *event);
    event->head.ns = bpf_ktime_get_ns();
    submit(event, 0);
    delete_stream(&key);
    return 0;
}

static long flush_next_low(u32 i, void *context)
{
    struct low_fds *fds = context;
    if (!fds->left)
        return 1;
    flush_stream(fds->pid, take_lowest_fd(fds), fds->writes);
    return 0;
}

#ifdef BEFORE_6_1
GLOBAL_FUNCTION int flush_low_fds_of(u32 pid, u64 fds)
#else
GLOBAL_FUNCTION int flush_low_fds(const struct process_state *process, u32 pid, u64 fds)
#endif
{
#ifdef BEFORE_6_1
    struct process_state *process = process_of(pid);
#endif
    if (!process)
        return 0;
    for (u32 writes = 0; writes < 2; writes++) {
        struct low_fds set = {process->fd_bits[writes] & fds, pid, writes};
        LOOP(LOW_FDS, LOW_FDS, flush_next_low, &set);
    }
    return 0;
}

/* The bits of the low descriptors from `first` to `last`. */
static __always_inline u64 low_bits_between(u32 first, u32 last)
{
    u64 from = first < LOW_FDS ? ALL_LOW_FDS << (first & (LOW_FDS - 1)) : 0;
    return last < LOW_FDS - 1 ? from & ((1ULL << ((last & (LOW_FDS - 1)) + 1)) - 1) : from;
}

/* There is no list of the other descriptors: flush_range() tries this many, four times the default RLIMIT_NOFILE. */
#ifdef BEFORE_6_1
enum { MAX_HIGH_FDS = 192 }; /* the verifier follows each of them; a shell reads its script from descriptor 255 */
#else
enum { MAX_HIGH_FDS = 4096 };
#endif
struct high_fds {
    u32 pid, first;
};
static long flush_next_high(u32 i, void *context)
{
    struct high_fds *fds = context;
    flush_stream(fds->pid, fds->first + i, 0);
    flush_stream(fds->pid, fds->first + i, 1);
    return 0;
}

#ifdef BEFORE_6_1
GLOBAL_FUNCTION int flush_range_of(u32 pid, u32 first, u32 last)
#else
GLOBAL_FUNCTION int flush_range(const struct process_state *process, u32 pid, u32 first, u32 last)
#endif
{
#ifdef BEFORE_6_1
    struct process_state *process = process_of(pid);
#endif
    if (!process || last < first)
        return 0;
    flush_low_fds(process, pid, low_bits_between(first, last));
    if (process->high_fds && last >= LOW_FDS) {
        struct high_fds fds = {pid, first < LOW_FDS ? LOW_FDS : first};
        LOOP(MAX_HIGH_FDS, last - fds.first < MAX_HIGH_FDS ? last - fds.first + 1 : MAX_HIGH_FDS, flush_next_high, &fds);
    }
    return 0;
}
