/* count.h: the counters of a stream: what happens at every call that moves bytes. */
#ifndef WEIR_COUNT_H
#define WEIR_COUNT_H

#include "buffers.h"
#include "maps.h"

#define EINTR_ 4
#define EAGAIN_ 11
#define BLOCK_MASK 4095

/* Descriptors below this have a bit each in struct process. */
enum { LOW = 64 };

/* How many bits are set. */
static __always_inline u32 bits_of(u32 n)
{
    n -= (n >> 1) & 0x55555555;
    n = (n & 0x33333333) + ((n >> 2) & 0x33333333);
    return (((n + (n >> 4)) & 0x0f0f0f0f) * 0x01010101) >> 24;
}

/* How many bits the size has, without a branch: the verifier would follow each of them. All bits below the
 * highest are set, then counted. */
static __always_inline u32 slot_of(u64 size)
{
    u32 n = size < 1U << 31 ? size : (1U << 31) - 1;
    n |= n >> 1;
    n |= n >> 2;
    n |= n >> 4;
    n |= n >> 8;
    n |= n >> 16;
    return bits_of(n);
}

/* Where the stream stood before this call. */
static __always_inline u64 began_at(const struct counts *counts, const struct transfer *t)
{
    if (t->position >= 0)
        return t->position;
    return t->result > 0 && !t->in_kernel ? counts->file.pos - t->result : counts->file.pos; /* it has moved on by now */
}

/* A stream's counters; made at its first call. */
static __always_inline struct counts *stream_of(struct process *process, u32 pid, const struct transfer *t)
{
    struct stream_key key = {pid, t->fd * 2 + t->writes};
    struct counts *counts;
    struct room *own = room();
    u64 file = file_of(t->fd);
    if (!own)
        return 0;
    struct counts *fresh = &own->fresh;
    __builtin_memset(fresh, 0, sizeof *fresh);
    begin(&fresh->head, KIND_COUNTS, t->fd);
    if (file)
        identify(&fresh->file, file);
    fresh->first_ns = fresh->head.ns;
    fresh->writes = t->writes;
    fresh->regular = (fresh->file.mode & 0170000) == 0100000;
    fresh->position = began_at(fresh, t);
    if (t->fd >= LOW)
        process->high_fds = 1;
    else /* it stays set when the stream ends: nothing is lost by a look for one that is not there */
        __sync_fetch_and_or(&process->streams[t->writes & 1], 1ULL << t->fd);
    if (bpf_map_update_elem(&streams, &key, fresh, BPF_NOEXIST) == 0)
        tally_by(TALLY_HELD, 1);
    counts = bpf_map_lookup_elem(&streams, &key); /* another thread may have been first */
    if (!counts)
        tally(TALLY_STREAMS);
    return counts;
}

/* The first call of a stream behind a pause, in which weir has taken what was counted before. What was closed and opened
 * meanwhile is another stream. */
APART int after_pause(struct counts *counts, const struct transfer *t)
{
    if (!counts || !t)
        return 0;
    u64 key = counts->file.key, ino = counts->file.ino;
    u64 file = file_of(t->fd);
    counts->doubted = 0;
    counts->first_ns = bpf_ktime_get_ns();
    if (!file)
        return 0;
    identify(&counts->file, file);
    if (counts->file.key != key || counts->file.ino != ino) {
        counts->told = counts->failed = 0;
        counts->high = 0;
        counts->regular = (counts->file.mode & 0170000) == 0100000;
    }
    counts->position = began_at(counts, t);
    return 0;
}

APART int tell(const struct transfer *t, const struct counts *counts, int tail)
{
    struct call *call;
    if (!t || !counts || !(call = reserve_some(sizeof *call)))
        return 0;
    begin(&call->head, KIND_CALL, t->fd);
    call->file = counts->file;
    call->file.pos = counts->position;
    __builtin_memcpy(call->args, t->args, sizeof call->args);
    call->args[2] = t->asked;
    call->result = t->result;
    call->nr = t->nr;
    call->counted = 1;
    call->tail = tail;
    call->data_bytes = 0;
    u64 bytes = t->result > 0 && t->buffer ? t->result : 0;
    if (bytes > HEAD)
        bytes = HEAD;
    if (bytes && bpf_probe_read_user(call->data, bytes & 127, (void *)t->buffer) == 0)
        call->data_bytes = bytes;
    submit(call, 0);
    return 0;
}

/* The first calls of a stream or after a fork (which sets `told` back), failures, and short ones. */
static __always_inline int worth_telling(struct counts *counts, const struct transfer *t)
{
    if (counts->told < FIRST_CALLS) {
        counts->told++;
        return 1;
    }
    if ((t->result < 0 || (t->writes && (u64)t->result < t->asked)) && t->result != -EAGAIN_) {
        counts->failed++;
        return counts->failed < FAILED_CALLS;
    }
    return 0;
}

/* A call that is one of the first, and so on: with what waits in the program's buffers at this moment. */
APART int tell_with_buffers(const struct transfer *t, struct counts *counts, int tail)
{
    u32 pid = bpf_get_current_pid_tgid() >> 32;
    if (!t || !counts)
        return 0;
    if (tail < 0 && t->writes && t->result == 1 && t->buffer) {
        u8 last = 0;
        if (bpf_probe_read_user(&last, 1, (void *)t->buffer) == 0)
            tail = last;
    }
    walk_at_call(bpf_map_lookup_elem(&processes, &pid), t->fd, t->buffer, counts->told == 1 && !t->writes);
    return tell(t, counts, tail);
}

static __always_inline void count_place(struct counts *counts, u64 moved, s64 position)
{
    u64 from = position < 0 ? counts->position : (u64)position, to = from + moved;
    if (from != counts->position)
        counts->jumps++;
    if ((from | to) & BLOCK_MASK)
        counts->unaligned++;
    if (from < counts->high)
        counts->again_bytes += (to < counts->high ? to : counts->high) - from;
    if (to > counts->high)
        counts->high = to;
    counts->position = to;
}

/* When the stream's last call ended. A look at the clock is a fifth of what a call costs here: where very many come within
 * a tick of the kernel's (1 to 10 ms), every 32nd is enough. A sync begins anew: what comes before the next is near. */
enum { STAMPED_CALLS = 32 };
static __always_inline void stamp(struct counts *counts)
{
    u32 tick = (u32)bpf_jiffies64();
    if (counts->tick != tick) {
        counts->tick = tick;
        counts->in_tick = 0;
    }
    if (counts->in_tick < STAMPED_CALLS || counts->in_tick % STAMPED_CALLS == 0)
        counts->last_ns = bpf_ktime_get_ns();
    counts->in_tick++;
}

/* The last of the bytes; -1: not read. */
static __always_inline int count_end(struct counts *counts, u64 buffer, u64 moved)
{
    u8 last = 0;
    if (bpf_probe_read_user(&last, 1, (void *)(buffer + moved - 1)) != 0)
        return -1;
    if (last == '\n')
        counts->newline_ends++;
    return last;
}

/* How much has moved, in one count where its size says all. */
static __always_inline void count_size(struct counts *counts, u32 slot, u64 moved)
{
    __sync_fetch_and_add(&counts->sizes[slot % SLOTS], 1);
    if (moved > 1) /* the reader knows the bytes of the others */
        __sync_fetch_and_add(&counts->bytes, moved);
}

/* One look-up is all that a call costs in the common case: whoever has a stream here is followed. */
APART int count(const struct transfer *t)
{
    if (!t)
        return 0;
    u32 pid = bpf_get_current_pid_tgid() >> 32;
    struct stream_key key = {pid, t->fd * 2 + t->writes};
    struct counts *counts = bpf_map_lookup_elem(&streams, &key);
    struct process *process;
    int tail = -1;
    if (!counts) {
        process = bpf_map_lookup_elem(&processes, &pid);
        if (!process || t->result == -9) /* EBADF: there is no such stream */
            return 0;
        counts = stream_of(process, pid, t);
        if (!counts)
            return 0;
    }
    if (counts->doubted)
        after_pause(counts, t);
    tally(TALLY_CALLS);
    if (t->result >= 0) {
        u64 moved = t->result;
        u32 slot = slot_of(moved), asked = slot_of(t->asked);
        count_size(counts, slot, moved);
        if (asked != slot)
            __sync_fetch_and_add(&counts->asked_other[asked % SLOTS], 1);
        if (moved < t->asked) {
            if (moved == 0)
                counts->zeros++;
            else
                counts->shorts++;
        }
        if (counts->regular && moved)
            count_place(counts, moved, t->position);
        if (t->writes && moved > 1 && t->buffer)
            tail = count_end(counts, t->buffer, moved);
    } else if (t->result == -EAGAIN_ || t->result == -EINTR_ || t->result <= -512) {
        __sync_fetch_and_add(&counts->again, 1); /* -512 and below: the kernel starts the call again */
    } else {
        __sync_fetch_and_add(&counts->errors, 1);
    }
    if (t->asked > counts->asked_max)
        counts->asked_max = t->asked;
    if (t->in_kernel)
        counts->in_kernel++;
    stamp(counts);
    if (worth_telling(counts, t))
        tell_with_buffers(t, counts, tail);
    return 0;
}

/* The same for a read(2) or write(2) that moved all that was asked for, of a stream that has told its first calls: a loop
 * of one-byte calls does nothing else, and each return from a function is dear where processors have to be kept from
 * guessing. Answers whether it was one. */
static __always_inline int count_whole(u32 fd, u64 buffer, u64 asked, s64 result, u32 writes)
{
    struct stream_key key = {bpf_get_current_pid_tgid() >> 32, fd * 2 + writes};
    struct counts *counts;
    if (result <= 0 || (u64)result != asked)
        return 0;
    counts = bpf_map_lookup_elem(&streams, &key);
    if (!counts || counts->doubted || counts->told < FIRST_CALLS)
        return 0;
    tally(TALLY_CALLS);
    count_size(counts, slot_of(asked), asked);
    if (counts->regular)
        count_place(counts, asked, -1);
    if (writes && asked > 1 && buffer)
        count_end(counts, buffer, asked);
    if (asked > counts->asked_max)
        counts->asked_max = asked;
    stamp(counts);
    return 1;
}

#endif
