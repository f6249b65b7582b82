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

/* Members of one struct that lie in its beginning are read at once: a reading costs more than the bytes that it copies. A
 * member that lies elsewhere in this kernel is read by itself; which do is known when the program is loaded. */
enum { FILE_BYTES = 192, INODE_BYTES = 128, SUPER_BYTES = 32, TABLE_BYTES = 32 };
union beginning {
    u64 words[FILE_BYTES / 8];
    u8 bytes[FILE_BYTES];
};
union short_beginning {
    u64 words[TABLE_BYTES / 8];
    u8 bytes[TABLE_BYTES];
};

/* One call that moves bytes, as its arguments say. */
struct transfer {
    u64 args[6];
    u64 buffer; /* 0: not known */
    u64 asked;
    s64 result;
    s64 position; /* -1: the file's own */
    u32 fd, nr;
    u32 writes, in_kernel;
};

/* glibc's FILE. */
struct stdio_file {
    u32 flags, pad;
    u64 read_ptr, read_end, read_base, write_base, write_ptr, write_end, buf_base, buf_end;
    u64 save_base, backup_base, save_end, markers, chain;
    u32 fileno, flags2;
};

/* Too large for the stack: before kernel 6.13 all functions that call each other have 512 bytes of it together. One a CPU:
 * these programs run with preemption off, and at none of their calls does another of them begin. */
struct room {
    struct counts fresh; /* a stream's counters */
    struct transfer call;
    union beginning of;
    struct stdio_file file;
};
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, u32);
    __type(value, struct room);
} scratch SEC(".maps");

/* One a CPU: [0] calls seen, [1] events that found no room, [2] 32-bit calls, [3] streams that found none, [4] of the
 * calls seen, those that name a file; and how many there are, by whoever made or removed one: [5] streams, [6] processes. */
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 7);
    __type(key, u32);
    __type(value, u64);
} tallies SEC(".maps");
enum { TALLY_CALLS, TALLY_LOST, TALLY_32BIT, TALLY_STREAMS, TALLY_NAMES, TALLY_HELD, TALLY_FOLLOWED };

/* Filled in before loading: enum class of each system call number. */
const volatile u8 classes[CLASSES];

static __always_inline struct room *room(void)
{
    u32 zero = 0;
    return bpf_map_lookup_elem(&scratch, &zero);
}

static __always_inline void tally(u32 which)
{
    u64 *count = bpf_map_lookup_elem(&tallies, &which);
    if (count)
        (*count)++;
}

/* Of what weir does not look for where the sum is 0: a walk through an empty map of so many buckets takes longer than all that
 * is in one. */
static __always_inline void tally_by(u32 which, s64 by)
{
    u64 *count = bpf_map_lookup_elem(&tallies, &which);
    if (count)
        __sync_fetch_and_add(count, by);
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
APART int wake(int at_once)
{
    u64 unread = bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA);
    int now = (at_once && unread <= event_bytes / 16) || fills(unread, event_bytes / 4) || fills(unread, event_bytes / 2);
    return now ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
}
static __always_inline void submit(void *event, int at_once) { bpf_ringbuf_submit(event, wake(at_once)); }

static __always_inline void begin(struct head *head, u32 kind, u32 fd)
{
    u64 id = bpf_get_current_pid_tgid();
    head->ns = bpf_ktime_get_ns();
    head->kind = kind;
    head->pid = id >> 32;
    head->tid = (u32)id;
    head->fd = fd;
}

#define READ_BEGINNING(into, most, type, from)                                                                         \
    bpf_probe_read_kernel(&(into), bpf_core_type_size(type) < (most) ? bpf_core_type_size(type) : (most), from)
#define MEMBER(in, most, from, member)                                                                                 \
    ({                                                                                                                 \
        u64 at_ = bpf_core_field_offset((from)->member);                                                               \
        typeof((from)->member) got_;                                                                                   \
        if (at_ + sizeof got_ <= (most))                                                                               \
            got_ = *(typeof(got_) *)((in).bytes + at_);                                                                \
        else                                                                                                           \
            got_ = BPF_CORE_READ(from, member);                                                                        \
        got_;                                                                                                          \
    })

/* The open file behind a descriptor of the current process, as an address; 0: there is none. */
APART u64 file_of(u32 fd)
{
    struct task_struct *task = (void *)bpf_get_current_task();
    struct fdtable *table = BPF_CORE_READ(task, files, fdt);
    struct file *file = 0;
    union short_beginning of;
    READ_BEGINNING(of, TABLE_BYTES, struct fdtable, table);
    if (fd >= MEMBER(of, TABLE_BYTES, table, max_fds))
        return 0;
    bpf_probe_read_kernel(&file, sizeof file, MEMBER(of, TABLE_BYTES, table, fd) + fd);
    return (u64)file;
}

APART int identify(struct identity *as, u64 address)
{
    struct file *file = (void *)address;
    struct room *own = room();
    if (!as || !own)
        return 0;
    READ_BEGINNING(own->of, FILE_BYTES, struct file, file);
    struct inode *inode = MEMBER(own->of, FILE_BYTES, file, f_inode);
    struct pipe_inode_info *pipe = MEMBER(own->of, FILE_BYTES, file, private_data);
    as->key = address;
    as->pos = MEMBER(own->of, FILE_BYTES, file, f_pos);
    as->flags = MEMBER(own->of, FILE_BYTES, file, f_flags);
    READ_BEGINNING(own->of, INODE_BYTES, struct inode, inode);
    struct super_block *super = MEMBER(own->of, INODE_BYTES, inode, i_sb);
    as->ino = MEMBER(own->of, INODE_BYTES, inode, i_ino);
    as->size = MEMBER(own->of, INODE_BYTES, inode, i_size);
    as->mode = MEMBER(own->of, INODE_BYTES, inode, i_mode);
    READ_BEGINNING(own->of, SUPER_BYTES, struct super_block, super);
    as->dev = MEMBER(own->of, SUPER_BYTES, super, s_dev);
    as->block_bits = MEMBER(own->of, SUPER_BYTES, super, s_blocksize_bits);
    as->pipe_pages = 0;
    if ((as->mode & 0170000) == 0010000) /* S_IFIFO */
        as->pipe_pages = BPF_CORE_READ(pipe, ring_size);
    return 0;
}

static __always_inline void no_file(struct identity *of) { __builtin_memset(of, 0, sizeof *of); }

#endif
