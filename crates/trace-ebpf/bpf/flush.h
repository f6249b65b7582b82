/* flush.h: the counters of streams that end, by a close, an execve or an exit: told and forgotten. */
#ifndef WEIR_FLUSH_H
#define WEIR_FLUSH_H

#include "count.h"
#include "maps.h"

static __always_inline void forget(struct stream_key *key)
{
    if (bpf_map_delete_elem(&streams, key) == 0)
        tally_by(TALLY_HELD, -1);
}

/* weir is far behind: the counters of a stream that ends are kept for it under a key that is no descriptor's, which it
 * looks through when the process ends. The descriptor's next file has counters of its own. */
#define ASIDE 0x80000000
static __always_inline int put_aside(struct stream_key *key, struct counts *counts)
{
    struct stream_key aside = {key->pid, ASIDE | (u32)(bpf_ktime_get_ns() >> 4)};
    struct process *process = bpf_map_lookup_elem(&processes, &key->pid);
    if (!process || bpf_map_update_elem(&streams, &aside, counts, BPF_NOEXIST) != 0)
        return 0; /* no room there either: they are told with those of the next one */
    tally_by(TALLY_HELD, 1);
    process->high_fds = 1;
    forget(key);
    return 0;
}

/* The counters of a descriptor that is closed; it may be another file's soon. */
APART int flush_one(u32 pid, u32 fd, u32 writes)
{
    struct stream_key key = {pid, fd * 2 + writes};
    struct counts *counts = bpf_map_lookup_elem(&streams, &key);
    if (!counts)
        return 0;
    if (counts->doubted) { /* it has counted nothing since the pause */
        forget(&key);
        return 0;
    }
    struct counts *event = reserve(sizeof *event);
    if (!event)
        return put_aside(&key, counts);
    __builtin_memcpy(event, counts, sizeof *event);
    event->head.ns = bpf_ktime_get_ns();
    submit(event, 0);
    forget(&key);
    return 0;
}

static __always_inline void flush_fd(const struct process *process, u32 pid, u32 fd)
{
    for (u32 writes = 0; writes < 2; writes++)
        if (fd >= LOW || process->streams[writes] >> fd & 1)
            flush_one(pid, fd, writes);
}

/* The low descriptors of one process in one direction that are still to be gone through. */
struct low_fds {
    u64 left;
    u32 pid, writes;
};

/* The lowest of them, which is taken out. */
static __always_inline u32 next_low(struct low_fds *fds)
{
    u64 lowest = fds->left & -fds->left, below = lowest - 1;
    fds->left ^= lowest;
    return below >> 32 ? 32 + bits_of(below >> 32) : bits_of(below);
}

static long flush_next(u32 i, void *context)
{
    struct low_fds *fds = context;
    if (!fds->left)
        return 1;
    flush_one(fds->pid, next_low(fds), fds->writes);
    return 0;
}

/* Of the descriptors below 64, those whose bits are set. */
APART int flush_low(const struct process *process, u32 pid, u64 which)
{
    if (!process)
        return 0;
    for (u32 writes = 0; writes < 2; writes++) {
        struct low_fds fds = {process->streams[writes] & which, pid, writes};
        bpf_loop(LOW, flush_next, &fds, 0);
    }
    return 0;
}
#define EVERY_LOW (~0ULL)

/* The bits of the low descriptors from the first to the last. */
static __always_inline u64 low_between(u32 first, u32 last)
{
    u64 from = first < LOW ? EVERY_LOW << (first & (LOW - 1)) : 0;
    return last < LOW - 1 ? from & ((1ULL << ((last & (LOW - 1)) + 1)) - 1) : from;
}

/* Of the others nobody has a list: so many are looked for. */
enum { MOST_HIGH = 4096 };
struct high_fds {
    u32 pid, first;
};
static long flush_next_high(u32 i, void *context)
{
    struct high_fds *fds = context;
    flush_one(fds->pid, fds->first + i, 0);
    flush_one(fds->pid, fds->first + i, 1);
    return 0;
}

/* The descriptors from the first to the last. */
APART int flush_range(const struct process *process, u32 pid, u32 first, u32 last)
{
    if (!process || last < first)
        return 0;
    flush_low(process, pid, low_between(first, last));
    if (process->high_fds && last >= LOW) {
        struct high_fds fds = {pid, first < LOW ? LOW : first};
        bpf_loop(last - fds.first < MOST_HIGH ? last - fds.first + 1 : MOST_HIGH, flush_next_high, &fds, 0);
    }
    return 0;
}

#endif
