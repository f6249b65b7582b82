/* maps.h: what the programs keep, and how they find it. */
#ifndef WEIR_MAPS_H
#define WEIR_MAPS_H

#include "kernel.h"
#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "events.h"

/* A function that is verified by itself, once, and not again with every state of its callers. Its pointers
 * may be null as far as the verifier knows. */
#define APART __attribute__((noinline))

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 16384);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, u32);
    __type(value, struct process);
} processes SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 65536);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, struct stream_key);
    __type(value, struct counts);
} streams SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 1024);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, struct library_key);
    __type(value, struct library);
} libraries SEC(".maps");

/* Filled in before loading: how much room there is for events. */
const volatile u64 event_bytes;
struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 1 << 22); /* weir gives it event_bytes */
} events SEC(".maps");

/* Too large for the stack: a fresh stream's counters. */
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, u32);
    __type(value, struct counts);
} scratch SEC(".maps");

/* One a CPU: [0] calls seen, [1] events that found no room, [2] 32-bit calls, [3] streams that found none, [4] of the
 * calls seen, those that name a file. */
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 5);
    __type(key, u32);
    __type(value, u64);
} tallies SEC(".maps");
enum { TALLY_CALLS, TALLY_LOST, TALLY_32BIT, TALLY_STREAMS, TALLY_NAMES };

/* Filled in before loading: enum class of each system call number. */
const volatile u8 classes[CLASSES];

static __always_inline void tally(u32 which)
{
    u64 *count = bpf_map_lookup_elem(&tallies, &which);
    if (count)
        (*count)++;
}

static __always_inline void *reserve(u64 bytes)
{
    void *event = bpf_ringbuf_reserve(&events, bytes, 0);
    if (!event)
        tally(TALLY_LOST);
    return event;
}

/* For single calls: what comes after them (counters, ends) must find room. */
static __always_inline void *reserve_some(u64 bytes)
{
    if (bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) > event_bytes / 4 * 3) {
        tally(TALLY_LOST);
        return 0;
    }
    return reserve(bytes);
}

/* Whether the reader is to take what was reserved at once. The rest waits for it to come by, which it does every few
 * milliseconds: waking it costs a program that makes many calls more than looking at them. It is behind then, so the
 * kernel would not wake it of itself when it has to be: that is when a quarter of the room is taken, and again when a
 * half is. One that is far behind otherwise is at work already. */
static __always_inline int fills(u64 unread, u64 bytes)
{
    return unread >= bytes && unread < bytes + 1024; /* more than one event has */
}
static __always_inline void submit(void *event, int at_once)
{
    u64 unread = bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA);
    int wake = (at_once && unread <= event_bytes / 16) || fills(unread, event_bytes / 4) || fills(unread, event_bytes / 2);
    bpf_ringbuf_submit(event, wake ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
}

static __always_inline void begin(struct head *head, u32 kind, u32 fd)
{
    u64 id = bpf_get_current_pid_tgid();
    head->ns = bpf_ktime_get_ns();
    head->kind = kind;
    head->pid = id >> 32;
    head->tid = (u32)id;
    head->fd = fd;
}

static __always_inline struct file *file_of(u32 fd)
{
    struct task_struct *task = (void *)bpf_get_current_task();
    struct fdtable *table = BPF_CORE_READ(task, files, fdt);
    struct file **slots, *file = 0;
    if (fd >= BPF_CORE_READ(table, max_fds))
        return 0;
    slots = BPF_CORE_READ(table, fd);
    bpf_probe_read_kernel(&file, sizeof file, slots + fd);
    return file;
}

static __always_inline void identify(struct identity *of, struct file *file)
{
    struct inode *inode = BPF_CORE_READ(file, f_inode);
    of->key = (u64)file;
    of->dev = BPF_CORE_READ(inode, i_sb, s_dev);
    of->ino = BPF_CORE_READ(inode, i_ino);
    of->pos = BPF_CORE_READ(file, f_pos);
    of->size = BPF_CORE_READ(inode, i_size);
    of->mode = BPF_CORE_READ(inode, i_mode);
    of->flags = BPF_CORE_READ(file, f_flags);
    of->block_bits = BPF_CORE_READ(inode, i_sb, s_blocksize_bits);
    of->pipe_pages = 0;
    if ((of->mode & 0170000) == 0010000) { /* S_IFIFO */
        struct pipe_inode_info *pipe = BPF_CORE_READ(file, private_data);
        of->pipe_pages = BPF_CORE_READ(pipe, ring_size);
    }
}

static __always_inline void no_file(struct identity *of) { __builtin_memset(of, 0, sizeof *of); }

#endif
