/* maps.h: the maps, read-only data and per-CPU scratch space of all BPF programs. */
#ifndef WEIR_MAPS_H
#define WEIR_MAPS_H

#include "kernel.h"
#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "events.h"

/* The units are compiled twice. BEFORE_6_1 makes the object for kernels before Linux 6.1, where
 * - the maps are preallocated, and smaller: a program may not allocate wherever it runs (6.1 brought bpf_mem_alloc),
 * - loops are bounded loops, because bpf_loop() came with 5.17,
 * - global functions have no pointer arguments (5.12) but find the objects again: the call in the scratch space, the process in
 *   its map; load.rs makes the other functions with pointer arguments static,
 * - the only atomic operation is an addition without a result (others: 5.12; on arm64: 5.18). */
#ifdef BEFORE_6_1
#define MAP_SIZES(entries, preallocated) __uint(max_entries, preallocated)
#define LOOP(most, times, body, context)                                                                               \
    do {                                                                                                               \
        u32 times_ = (times);                                                                                          \
        _Pragma("clang loop unroll(disable)") for (u32 i_ = 0; i_ < (most); i_++)                                      \
        {                                                                                                              \
            if (i_ >= *(volatile u32 *)&times_ || body(i_, context))                                                   \
                break;                                                                                                 \
        }                                                                                                              \
    } while (0)
#else
#define MAP_SIZES(entries, preallocated) __uint(max_entries, entries); __uint(map_flags, BPF_F_NO_PREALLOC)
#define LOOP(most, times, body, context) bpf_loop(times, body, context, 0)
#endif

/* Returns the registers that the current thread has saved at its system call. bpf_task_pt_regs() came with Linux 5.15: before,
 * they are computed to be at the end of the kernel stack. */
#ifdef BEFORE_6_1
enum { KERNEL_STACK_BYTES = 16384 }; /* THREAD_SIZE of x86-64, and of arm64 without 64 KiB pages and KASAN */
#define SAVED(regs, member) BPF_CORE_READ(regs, member)
static __always_inline struct pt_regs *saved_registers(void)
{
    struct task_struct *task = (void *)bpf_get_current_task();
    return BPF_CORE_READ(task, stack) + KERNEL_STACK_BYTES - bpf_core_type_size(struct pt_regs);
}
#else
#define SAVED(regs, member) ((regs)->member)
static __always_inline struct pt_regs *saved_registers(void)
{
    return (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());
}
#endif

/* At a tracepoint that SRCU guards (Linux 7), a program may be preempted. Until the program continues, the kernel skips it for all
 * other threads on that CPU. load.rs resolves these two calls to kernel functions on such kernels, and replaces them by no
 * operations on others. The numbers are those of hooks.rs. */
static void (*const disable_preemption)(void) = (void *)1000001;
static void (*const enable_preemption)(void) = (void *)1000002;
#define UNPREEMPTED(call)                                                                                              \
    ({                                                                                                                 \
        disable_preemption();                                                                                          \
        call;                                                                                                          \
        enable_preemption();                                                                                           \
        0;                                                                                                             \
    })

/* A BPF global function: the verifier checks it once, not again for each caller's state, and assumes that its pointer
 * arguments may be null. */
#define GLOBAL_FUNCTION __attribute__((noinline))

struct process_map {
    __uint(type, BPF_MAP_TYPE_HASH);
    MAP_SIZES(16384, 4096);
    __type(key, u32);
    __type(value, struct process_state);
};
extern struct process_map processes SEC(".maps");

struct stream_map {
    __uint(type, BPF_MAP_TYPE_HASH);
    MAP_SIZES(65536, 16384);
    __type(key, struct stream_key);
    __type(value, struct stream_counters);
};
extern struct stream_map streams SEC(".maps");

/* The call in which a thread blocks or blocked last. Threads that never blocked have none. */
struct thread_wait {
    struct stream_key stream;
    u64 file;         /* address of the struct file; the descriptor may refer to another one later */
    u64 since_ns;     /* 0: it blocks in no call on a stream */
    u64 unclaimed_ns; /* for which it blocked in calls on a stream that has no counters yet */
    u64 sync_ns;      /* when it first blocked in a CLASS_SYNC call that has not returned; 0: not */
};
struct wait_map {
    __uint(type, BPF_MAP_TYPE_HASH);
    MAP_SIZES(32768, 4096);
    __type(key, u32);
    __type(value, struct thread_wait);
};
extern struct wait_map waits SEC(".maps");

/* A write(2) in which or right after which a thread ended. The key has the end of the bytes that it was asked to write: a stream
 * writes all that is pending, so its pending bytes end there too. */
struct last_write_key {
    u32 pid;
    int image; /* see struct process_state */
    u64 asked_end;
};
struct last_write {
    u64 begin, end; /* of the bytes that were written */
};
/* An LRU map: nothing deletes the entries of a process, because a BPF program cannot list them. */
struct last_write_map {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 4096);
    __type(key, struct last_write_key);
    __type(value, struct last_write);
};
extern struct last_write_map last_writes SEC(".maps");

struct library_map {
    __uint(type, BPF_MAP_TYPE_HASH);
    MAP_SIZES(1024, 1024);
    __type(key, struct library_key);
    __type(value, struct library);
};
extern struct library_map libraries SEC(".maps");

struct event_map {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 1 << 22); /* load.rs sets it to event_bytes */
};
extern struct event_map events SEC(".maps");

/* Constants that load.rs sets before it loads the programs. */
extern const volatile u64 event_bytes;             /* size of the ring buffer */
extern const volatile u8 classes[SYSCALL_NUMBERS]; /* enum syscall_class by system call number */
extern const volatile u32 preemptible;             /* 1: another thread may interrupt a program on its CPU */
extern const volatile u32 pauses_by_flag;          /* 1: sampling gaps are those of the map `sampling` */

/* Says whether calls are recorded, where on_sys_exit stays attached in sampling gaps: entry 0 is 1 in a gap. */
struct sampling_map {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, u32);
    __type(value, u32);
};
extern struct sampling_map sampling SEC(".maps");

/* Destination of one bpf_probe_read_kernel() for several members at the beginning of a kernel struct (open_file.h). */
enum { FILE_BYTES = 192, INODE_BYTES = 128, SUPER_BYTES = 32, TABLE_BYTES = 32 };
union struct_prefix {
    u64 words[FILE_BYTES / 8];
    u8 bytes[FILE_BYTES];
};
union short_struct_prefix {
    u64 words[TABLE_BYTES / 8];
    u8 bytes[TABLE_BYTES];
};

/* A call that moves bytes. */
struct transfer {
    u64 args[6];
    u64 buffer; /* 0: unknown, or in several segments */
    u64 vector; /* address of the segments of a write that has several; 0: none */
    u64 segments;
    u64 last_byte; /* address of the last byte that the segments moved; 0: unknown */
    u64 requested_bytes;
    s64 result;
    s64 position; /* -1: the open file's own offset */
    u32 fd, nr;
    u32 writes, in_kernel;
    u32 leaves_input; /* 1: the call moves nothing out of its input (MSG_PEEK, tee), so it is not emitted */
    u32 pad;
};

/* glibc's FILE on x86-64 and aarch64 (libio/bits/types/struct_FILE.h); unchanged since 1999. */
struct stdio_file {
    u32 flags, pad;
    u64 read_ptr, read_end, read_base, write_base, write_ptr, write_end, buf_base, buf_end;
    u64 save_base, backup_base, save_end, markers, chain;
    u32 fileno, flags2;
};

/* The pending wide characters of a FILE, which stdio converts into its buffer of bytes at a flush. */
struct wide_text {
    u64 begin, characters;
    u64 charset; /* address of the name of their encoding */
};

/* A walk of the current process's list of streams (buffers.bpf.c). */
struct buffer_walk {
    u64 address; /* of the next FILE; 0: none */
    u64 call_buffer;
    u64 written_at, written_end; /* see struct process_state */
    u32 moment, call_fd;
    u32 found_call_fd;
    u32 has_last_writes;
    int image;
    u32 pad; /* explicit, because older kernels reject uninitialized stack bytes */
};

/* Objects that do not fit on the stack: before Linux 6.13 a call chain shares 512 bytes. Where the programs run with
 * preemption disabled, one per CPU is enough, because they do not nest. Elsewhere (`preemptible`) each thread has its own. */
struct scratch_space {
#ifdef BEFORE_6_1
    struct buffer_walk walk;
    u32 directory_bytes, pad;
#endif
    struct stream_counters counters;
    struct transfer call;
    union struct_prefix prefix;
    struct stdio_file file;
    struct wide_text wide;
    u64 milestone;      /* the address of an earlier FILE: where the walk meets it again, the list is circular */
    u64 head_left;      /* bytes of the call that are not in `head` yet */
    u32 head_bytes;
    u32 head_pad;
    u8 head[3 * DATA_BYTES]; /* first bytes of a call in several segments; more than are emitted, for the verifier's masks */
};
struct scratch_map {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, u32);
    __type(value, struct scratch_space);
};
extern struct scratch_map scratch_spaces SEC(".maps");
struct thread_scratch_map {
    __uint(type, BPF_MAP_TYPE_HASH);
    MAP_SIZES(32768, 4096);
    __type(key, u32);
    __type(value, struct scratch_space);
};
extern struct thread_scratch_map thread_scratch_spaces SEC(".maps");

struct tally_map {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, TALLIES);
    __type(key, u32);
    __type(value, u64);
};
extern struct tally_map tallies SEC(".maps");

/* Returns whether a class of calls that move bytes to or from user space is of the write direction. */
static __always_inline u32 class_writes(u32 class)
{
    return class == CLASS_WRITE || class == CLASS_PWRITE || class == CLASS_WRITEV || class == CLASS_PWRITEV ||
           class == CLASS_VMSPLICE || class == CLASS_SENDMSG || class == CLASS_SENDMMSG;
}

/* Returns the scratch space of the current thread or CPU. Its contents are undefined. Null if the thread's cannot be allocated. */
static __always_inline struct scratch_space *scratch(void)
{
    u32 zero = 0, tid = (u32)bpf_get_current_pid_tgid();
    struct scratch_space *of_cpu = bpf_map_lookup_elem(&scratch_spaces, &zero), *own;
    if (!preemptible || !of_cpu)
        return of_cpu;
    own = bpf_map_lookup_elem(&thread_scratch_spaces, &tid);
    if (own)
        return own;
    bpf_map_update_elem(&thread_scratch_spaces, &tid, of_cpu, BPF_NOEXIST);
    return bpf_map_lookup_elem(&thread_scratch_spaces, &tid);
}

#ifdef BEFORE_6_1
static __always_inline struct process_state *process_of(u32 pid) { return bpf_map_lookup_elem(&processes, &pid); }
static __always_inline struct process_state *current_process(void) { return process_of(bpf_get_current_pid_tgid() >> 32); }
#endif

/* Returns whether this is a sampling gap in which on_sys_exit stays attached. */
static __always_inline int is_paused(void)
{
    u32 zero = 0, *paused;
    if (!pauses_by_flag)
        return 0;
    paused = bpf_map_lookup_elem(&sampling, &zero);
    return paused && *(volatile u32 *)paused;
}

static __always_inline void tally(u32 index)
{
    u64 *count = bpf_map_lookup_elem(&tallies, &index);
    if (count && preemptible)
        __sync_fetch_and_add(count, 1);
    else if (count)
        (*count)++;
}

/* For the entry counts of maps. weir does not iterate over a map whose count is 0: iterating over the buckets of an empty map
 * takes 100 us. */
static __always_inline void tally_by(u32 index, s64 by)
{
    u64 *count = bpf_map_lookup_elem(&tallies, &index);
    if (count)
        __sync_fetch_and_add(count, by);
}

#endif
