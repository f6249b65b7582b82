/* syscalls.bpf.c: the program at the exit of system calls. Reads and writes are counted in the kernel, by stream; other
 * calls are emitted one by one. */
#include "counters.h"
#include "directory.h"
#include "flush.h"
#include "open_file.h"
#include "ring_buffer.h"
#include "transfers.h"
#include "waits.h"

#define AT_FDCWD_ (-100)
#define CLOSE_RANGE_CLOEXEC_ 4
#define MAP_ANONYMOUS_ 0x20
#define PROT_READ_ 1
#define SIGURG_ 23

struct arguments {
    u64 at[6];
};

static __always_inline void fill_call(struct call_event *call, const struct arguments *args, s64 result, u32 nr, u32 fd)
{
    fill_head(&call->head, KIND_CALL, fd);
    clear_open_file(&call->file);
    u64 file = (int)fd >= 0 ? file_of(fd) : 0;
    if (file)
        read_open_file(&call->file, file);
    __builtin_memcpy(call->args, args->at, sizeof call->args);
    call->result = result;
    call->nr = nr;
    call->counted = 0;
    call->data_bytes = 0;
    call->tail = -1;
}

/* Emits a call, with the two new descriptors of pipe(2) and socketpair(2). */
GLOBAL_FUNCTION int emit_call(const struct arguments *args, s64 result, u32 nr, u32 fd)
{
    struct call_event *call;
    if (!args || !(call = reserve_for_call(sizeof *call)))
        return 0;
    fill_call(call, args, result, nr, fd);
    if (result == 0 &&
        (classes[nr % SYSCALL_NUMBERS] == CLASS_PAIR_0 || classes[nr % SYSCALL_NUMBERS] == CLASS_PAIR_3)) {
        u64 pair = classes[nr % SYSCALL_NUMBERS] == CLASS_PAIR_0 ? args->at[0] : args->at[3];
        if (bpf_probe_read_user(call->data, 8, (void *)pair) == 0)
            call->data_bytes = 8;
    }
    submit(call, 0);
    return 0;
}

/* The arguments of a call that are paths: the index of the first in bits 0 to 2, of the second in bits 4 to 6. */
#define PATHS(first, second) ((first) | (second) << 4)
#define NO_PATH 6
/* Flag: weir is woken. */
#define WAKE_NOW 0x100

/* Emits a call with its paths. */
GLOBAL_FUNCTION int emit_path_call(const struct arguments *args, s64 result, u32 nr, u32 fd, u32 paths)
{
    u32 first = paths & 7, second = paths >> 4 & 7;
    struct path_call_event *event;
    if (!args || !(event = reserve_for_call(sizeof *event)))
        return 0;
    fill_call(&event->call, args, result, nr, fd);
    event->path[0][0] = event->path[1][0] = 0;
    if (first < NO_PATH)
        bpf_probe_read_user_str(event->path[0], PATH_BYTES, (void *)args->at[first]);
    if (second < NO_PATH)
        bpf_probe_read_user_str(event->path[1], PATH_BYTES, (void *)args->at[second]);
    submit(event, paths & WAKE_NOW);
    return 0;
}

/* Handles a call with paths. `from_cwd`: a relative path starts at the working directory. After a change of directory weir
 * is woken, because it lists the directory of a new file. */
static __always_inline void on_path_call(struct process_state *process, const struct arguments *args, s64 result,
                                         u32 nr, u32 fd, int from_cwd, u32 paths)
{
    int change = from_cwd ? report_directory(process) : (int)DIRECTORY_SAME;
    tally(TALLY_PATH_CALLS);
    if (change != DIRECTORY_LOST) /* otherwise the path would seem to be relative to the previous directory */
        emit_path_call(args, result, nr, fd, change == DIRECTORY_REPORTED ? paths | WAKE_NOW : paths);
}

/* fsync(2) and its kin have no sixth argument: args[5] becomes the time at which the call first blocked, or the present time
 * if it did not. After a sampling gap it is 0, because the time may be that of an earlier call. */
static __always_inline void set_blocked_since(u32 pid, struct arguments *args, u32 fd)
{
    struct stream_key key = {pid, fd * 2 + 1};
    struct stream_counters *counters = bpf_map_lookup_elem(&streams, &key);
    args->at[5] = sync_blocked_since();
    if (counters && counters->stale)
        args->at[5] = 0;
}

/* io_uring_setup(2) has no third argument: args[2] becomes io_uring_params.flags, its third word. */
static __always_inline void set_ring_flags(struct arguments *args)
{
    u32 flags = 0;
    bpf_probe_read_user(&flags, sizeof flags, (void *)(args->at[1] + 8));
    args->at[2] = flags;
}

/* Counts an lseek(2) in both directions of the descriptor. Returns whether to emit the call; the last one is known from the
 * counters. */
GLOBAL_FUNCTION int count_seek(u32 pid, u32 fd, u64 position)
{
    int emit = 1;
    for (u32 writes = 0; writes < 2; writes++) {
        struct stream_key key = {pid, fd * 2 + writes};
        struct stream_counters *counters = bpf_map_lookup_elem(&streams, &key);
        if (!counters || counters->stale)
            continue;
        if (counters->position != position)
            counters->jumps++;
        counters->position = position;
        counters->seeks++;
        counters->seek_ns = bpf_ktime_get_ns();
        if (counters->seeks > EMITTED_SEEKS)
            emit = 0;
    }
    return emit;
}

/* Stores the address of the list of streams when the process maps a known C library. */
GLOBAL_FUNCTION int find_stream_list(struct process_state *process, const struct arguments *args, s64 result)
{
    struct library_key key;
    struct library *library;
    u64 file;
    if (!process || !args || process->list || result < 0 || (int)args->at[4] < 0 || args->at[5] != 0)
        return 0;
    file = file_of((u32)args->at[4]);
    if (!file)
        return 0;
    key.ino = BPF_CORE_READ((struct file *)file, f_inode, i_ino);
    key.size = BPF_CORE_READ((struct file *)file, f_inode, i_size);
    library = bpf_map_lookup_elem(&libraries, &key);
    if (library && library->base == LIST_IN_MAPPING) {
        process->list = (u64)result + library->offset;
        process->walker = library->walker;
    }
    return 0;
}

/* The dynamic loader makes a library's relocated data read-only: the C library's streams are initialized, and no code of
 * the program has run. SIGURG stops the command there; its tracer has made sure that SIGURG is not blocked, and suppresses
 * it. Without a tracer the default action of SIGURG is to do nothing. */
static __always_inline void on_mprotect(struct process_state *process, const struct arguments *args, s64 result)
{
    if (process->command != COMMAND_STOPS || !process->list || result || args->at[2] != PROT_READ_)
        return;
    process->command = COMMAND_CHILD;
    bpf_send_signal(SIGURG_);
}

/* Flushes the streams that the number of a new descriptor had before. on_sys_exit handles a close(2) only at its end; before that,
 * another thread may already have got the number and used it. */
GLOBAL_FUNCTION int end_previous_streams(const struct process_state *process, u32 pid, s64 fd)
{
    if (process && fd >= 0)
        flush_fd(process, pid, (u32)fd);
    return 0;
}

/* As end_previous_streams(), for the two new descriptors of pipe(2) or socketpair(2), which the kernel has stored at `address`. They are
 * read into the sixth argument, which these calls do not have, because the stack has no room left (see struct scratch_space). */
static __always_inline void end_previous_pair(const struct process_state *process, u32 pid, struct arguments *args,
                                              u64 address)
{
    if (bpf_probe_read_user(&args->at[5], sizeof args->at[5], (void *)address) != 0)
        return;
    end_previous_streams(process, pid, (int)args->at[5]);
    end_previous_streams(process, pid, (int)(args->at[5] >> 32));
}

/* Returns whether an fcntl(2) command is F_DUPFD or F_DUPFD_CLOEXEC, which return a new descriptor. */
static __always_inline int duplicates_descriptor(u32 command) { return command == 0 || command == 1030; }

/* Returns whether an fcntl(2) command is F_DUPFD, F_SETFD, F_SETFL, F_DUPFD_CLOEXEC or F_SETPIPE_SZ. */
static __always_inline int changes_descriptor(u32 command)
{
    return duplicates_descriptor(command) || command == 2 || command == 4 || command == 1031;
}

/* Emits a call without paths. */
static __always_inline void on_fd_call(struct process_state *process, u32 pid, struct arguments *args, s64 result,
                                       u32 nr, u32 class)
{
    u32 fd = (u32)args->at[0], emitted_fd = fd;
    switch (class) {
    case CLASS_CLOSE:
        flush_fd(process, pid, fd);
        emitted_fd = -1;
        break;
    case CLASS_CLOSE_RANGE:
        if (result == 0 && !(args->at[2] & CLOSE_RANGE_CLOEXEC_)) /* which closes nothing yet */
            flush_range(process, pid, fd, (u32)args->at[1]);
        emitted_fd = -1;
        break;
    case CLASS_DUP_TO:
        if (result >= 0 && fd != (u32)args->at[1])
            flush_fd(process, pid, (u32)args->at[1]);
        emitted_fd = (u32)result;
        break;
    case CLASS_NEW_FD:
        end_previous_streams(process, pid, result);
        emitted_fd = (u32)result;
        break;
    case CLASS_FCNTL:
        if (!changes_descriptor((u32)args->at[1]))
            return;
        if (duplicates_descriptor((u32)args->at[1]))
            end_previous_streams(process, pid, result);
        break;
    case CLASS_PAIR_0:
    case CLASS_PAIR_3:
        if (result == 0)
            end_previous_pair(process, pid, args, args->at[class == CLASS_PAIR_0 ? 0 : 3]);
        emitted_fd = -1;
        break;
    case CLASS_LSEEK:
        if (result >= 0 && !count_seek(pid, fd, (u64)result))
            return;
        break;
    case CLASS_SYNC:
        set_blocked_since(pid, args, fd);
        break;
    case CLASS_RING:
        set_ring_flags(args);
        end_previous_streams(process, pid, result);
        emitted_fd = (u32)result;
        break;
    case CLASS_MMAP:
        find_stream_list(process, args, result);
        if ((int)args->at[4] < 0 || args->at[3] & MAP_ANONYMOUS_)
            return;
        emitted_fd = (u32)args->at[4];
        break;
    }
    emit_call(args, result, nr, emitted_fd);
}

/* Handles a call that moves no bytes. */
static __always_inline void on_other_call(struct process_state *process, u32 pid, struct arguments *args, s64 result,
                                          u32 nr, u32 class)
{
    s64 new_fd = -1;
    u32 paths = 0;
    int from_cwd = 1, at_cwd = (int)args->at[0] == AT_FDCWD_;
    if (class == CLASS_PROTECT) {
        on_mprotect(process, args, result);
        return;
    }
    tally(TALLY_CALLS);
    switch (class) {
    case CLASS_OPENAT:
        paths = PATHS(1, NO_PATH);
        from_cwd = at_cwd;
        new_fd = result;
        break;
    case CLASS_OPEN:
        paths = PATHS(0, NO_PATH);
        new_fd = result;
        break;
    case CLASS_PATH_0:
        paths = PATHS(0, NO_PATH);
        break;
    case CLASS_PATH_1:
        paths = PATHS(1, NO_PATH);
        from_cwd = at_cwd;
        break;
    case CLASS_PATHS_01:
        paths = PATHS(0, 1);
        break;
    case CLASS_PATHS_13:
        paths = PATHS(1, 3);
        from_cwd = at_cwd || (int)args->at[2] == AT_FDCWD_;
        break;
    default:
        on_fd_call(process, pid, args, result, nr, class);
        return;
    }
    end_previous_streams(process, pid, new_fd);
    on_path_call(process, args, result, nr, (u32)new_fd, from_cwd, paths);
}

/* The slow path of on_sys_exit. It is not inlined: from 64 bytes of stack on, a program's frame is in separate memory (Linux
 * 6.13 and later), which slows down the verifier. */
static __attribute__((noinline)) int on_call(struct pt_regs *regs, s64 result, u32 nr, u32 class)
{
    struct process_state *process = 0;
    struct scratch_space *own = preemptible ? 0 : scratch();
    u32 pid = 0;
    /* A call that moves bytes finds its stream by one lookup. Other calls check first that the process is traced, as do all
     * calls where only threads of traced processes may get a scratch space. */
    if (preemptible || !class || class > CLASS_PWRITE || CALL_IS_32BIT(regs)) {
        pid = bpf_get_current_pid_tgid() >> 32;
        process = bpf_map_lookup_elem(&processes, &pid);
        if (!process)
            return 0;
        if (CALL_IS_32BIT(regs)) {
            tally(TALLY_COMPAT_CALLS);
            return 0;
        }
    }
    if (preemptible)
        own = scratch();
    if (!own) {
        if (preemptible) /* no memory for it */
            tally(TALLY_LOST_STREAMS);
        return 0;
    }
    struct transfer *t = &own->call;
    t->args[0] = CALL_0(regs);
    t->args[1] = CALL_1(regs);
    t->args[2] = CALL_2(regs);
    t->args[3] = CALL_3(regs);
    t->args[4] = CALL_4(regs);
    t->args[5] = CALL_5(regs);
    t->result = result;
    t->nr = nr;
    if (class <= CLASS_SENDMMSG)
        on_transfer(t, class);
    else if (class <= CLASS_TEE)
        on_kernel_transfer(t, class);
    else if (process)
        on_other_call(process, pid, (struct arguments *)t->args, result, nr, class);
    return 0;
}

static __always_inline int end_call(struct pt_regs *regs, long result)
{
    u32 nr = CALL_NUMBER(regs), class = nr < SYSCALL_NUMBERS ? classes[nr] : 0;
    if (CALL_IS_32BIT(regs)) /* 32-bit calls have other numbers */
        return on_call(regs, result, nr, class);
    if (!class)
        return 0;
    if ((class <= CLASS_WRITE || (class == CLASS_RECVFROM && !(CALL_3(regs) & MEASURING_FLAGS))) &&
        count_full_transfer((u32)CALL_0(regs), CALL_1(regs), CALL_2(regs), result, class == CLASS_WRITE))
        return 0;
    return on_call(regs, result, nr, class);
}

SEC("tp_btf/sys_exit")
int BPF_PROG(on_sys_exit, struct pt_regs *regs, long result)
{
    return is_paused() ? 0 : UNPREEMPTED(end_call(regs, result));
}
