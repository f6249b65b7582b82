/* trace.bpf.c: the programs at tracepoints: one handler a system call, at its exit; and the lives of processes.
 * Only what is rare is told one by one; reads and writes are counted here, by stream. */
#include "maps.h"

#include "buffers.h"
#include "count.h"

#define PATHS(first, second) ((first) | (second) << 4)

/* ---- system calls ---- */

struct arguments {
    u64 at[6];
};

APART int tell_plain(const struct arguments *args, s64 result, u32 nr, u32 fd)
{
    struct call *call;
    struct file *file;
    if (!args || !(call = reserve_some(sizeof *call)))
        return 0;
    begin(&call->head, KIND_CALL, fd);
    no_file(&call->file);
    file = (int)fd >= 0 ? file_of(fd) : 0;
    if (file)
        identify(&call->file, file);
    __builtin_memcpy(call->args, args->at, sizeof call->args);
    call->result = result;
    call->nr = nr;
    call->counted = 0;
    call->data_bytes = 0;
    call->tail = -1;
    if (result == 0 && (classes[nr % CLASSES] == CLASS_PAIR_0 || classes[nr % CLASSES] == CLASS_PAIR_3)) {
        u64 at = classes[nr % CLASSES] == CLASS_PAIR_0 ? args->at[0] : args->at[3];
        if (bpf_probe_read_user(call->data, 8, (void *)at) == 0)
            call->data_bytes = 8;
    }
    bpf_ringbuf_submit(call, 0);
    return 0;
}

/* Up to two of the arguments, by their numbers, are paths; 6: none. */
APART int tell_paths(const struct arguments *args, s64 result, u32 nr, u32 fd, u32 which)
{
    u32 first = which & 7, second = which >> 4 & 7;
    struct path_call *event;
    struct file *file;
    if (!args || !(event = reserve_some(sizeof *event)))
        return 0;
    begin(&event->call.head, KIND_CALL, fd);
    no_file(&event->call.file);
    file = (int)fd >= 0 ? file_of(fd) : 0;
    if (file)
        identify(&event->call.file, file);
    __builtin_memcpy(event->call.args, args->at, sizeof event->call.args);
    event->call.result = result;
    event->call.nr = nr;
    event->call.counted = 0;
    event->call.data_bytes = 0;
    event->call.tail = -1;
    event->path[0][0] = event->path[1][0] = 0;
    if (first < 6)
        bpf_probe_read_user_str(event->path[0], PATH, (void *)args->at[first]);
    if (second < 6)
        bpf_probe_read_user_str(event->path[1], PATH, (void *)args->at[second]);
    bpf_ringbuf_submit(event, 0);
    return 0;
}

struct vector {
    u64 base, bytes;
};

/* Sums a vector, up to 64 parts; where the bytes end matters only when they are all in the first part. */
struct summing {
    u64 at, sum;
};
static long sum_next(u32 i, void *context)
{
    struct summing *s = context;
    struct vector part;
    if (bpf_probe_read_user(&part, sizeof part, (void *)(s->at + i * sizeof part)) != 0)
        return 1;
    s->sum += part.bytes;
    return 0;
}

APART int by_vector(struct transfer *t, u64 address, u64 parts)
{
    if (!t)
        return 0;
    struct summing s = {address, 0};
    struct vector first;
    t->buffer = 0;
    if (bpf_probe_read_user(&first, sizeof first, (void *)address) == 0 &&
        (parts == 1 || (t->result >= 0 && (u64)t->result <= first.bytes)))
        t->buffer = first.base;
    bpf_loop(parts < 64 ? parts : 64, sum_next, &s, 0);
    t->asked = s.sum;
    return 0;
}

static __always_inline void move_bytes(struct process *process, struct transfer *t, u32 class)
{
    struct {
        u64 name, name_bytes, parts, count;
    } message;
    t->writes = class == CLASS_WRITE || class == CLASS_PWRITE || class == CLASS_WRITEV || class == CLASS_PWRITEV ||
                class == CLASS_SENDMSG;
    t->fd = (u32)t->args[0];
    t->buffer = t->args[1];
    t->asked = t->args[2];
    t->position = -1;
    t->in_kernel = 0;
    if (class == CLASS_PREAD || class == CLASS_PWRITE || class == CLASS_PREADV || class == CLASS_PWRITEV)
        t->position = t->args[3];
    if (class >= CLASS_READV && class <= CLASS_PWRITEV) {
        by_vector(t, t->args[1], t->args[2]);
    } else if (class == CLASS_RECVMSG || class == CLASS_SENDMSG) {
        t->asked = t->buffer = 0;
        if (bpf_probe_read_user(&message, sizeof message, (void *)t->args[1]) == 0)
            by_vector(t, message.parts, message.count);
    }
    count(process, t);
}

/* Bytes that do not come by the program: counted on both sides. */
APART int move_inside(struct process *process, struct transfer *t, u32 in, u32 out, u64 asked)
{
    if (!process || !t)
        return 0;
    t->buffer = 0;
    t->asked = asked;
    t->position = -1;
    t->in_kernel = 1;
    t->fd = in;
    t->writes = 0;
    count(process, t);
    t->fd = out;
    t->writes = 1;
    count(process, t);
    return 0;
}

/* Counts the move on both sides of the descriptor; whether to tell of it as well. The last one is known from
 * the counters. */
APART int set_position(u32 pid, u32 fd, u64 position)
{
    int news = 1;
    for (u32 writes = 0; writes < 2; writes++) {
        struct stream_key key = {pid, fd * 2 + writes};
        struct counts *counts = bpf_map_lookup_elem(&streams, &key);
        if (!counts)
            continue;
        if (counts->position != position)
            counts->jumps++;
        counts->position = position;
        counts->seeks++;
        counts->seek_ns = bpf_ktime_get_ns();
        if (counts->seeks > TOLD_SEEKS)
            news = 0;
    }
    return news;
}

/* A C library is mapped: from here on its streams can be found. */
APART int on_mmap(struct process *process, const struct arguments *args, s64 result)
{
    struct library_key key;
    struct library *library;
    struct file *file;
    if (!process || !args || process->list || result < 0 || (int)args->at[4] < 0 || args->at[5] != 0)
        return 0;
    file = file_of((u32)args->at[4]);
    if (!file)
        return 0;
    key.ino = BPF_CORE_READ(file, f_inode, i_ino);
    key.size = BPF_CORE_READ(file, f_inode, i_size);
    library = bpf_map_lookup_elem(&libraries, &key);
    if (library && library->how == 0) {
        process->list = (u64)result + library->offset;
        process->walker = library->walker;
    }
    return 0;
}

/* F_DUPFD, F_SETFD, F_SETFL, F_DUPFD_CLOEXEC, F_SETPIPE_SZ */
static __always_inline int changes_descriptor(u32 command)
{
    return command == 0 || command == 2 || command == 4 || command == 1030 || command == 1031;
}

static __always_inline void on_other(struct process *process, u32 pid, const struct arguments *args, s64 result,
                                     u32 nr, u32 class)
{
    u32 fd = (u32)args->at[0];
    switch (class) {
    case CLASS_CLOSE:
        flush_fd(pid, fd);
        tell_plain(args, result, nr, -1);
        return;
    case CLASS_CLOSE_RANGE:
        if (result == 0 && !(args->at[2] & 4)) /* CLOSE_RANGE_CLOEXEC closes nothing yet */
            flush_range(pid, fd, (u32)args->at[1]);
        tell_plain(args, result, nr, -1);
        return;
    case CLASS_DUP_TO:
        if (result >= 0 && fd != (u32)args->at[1])
            flush_fd(pid, (u32)args->at[1]);
        tell_plain(args, result, nr, (u32)result);
        return;
    case CLASS_NEW_FD:
        tell_plain(args, result, nr, (u32)result);
        return;
    case CLASS_FCNTL:
        if (changes_descriptor((u32)args->at[1]))
            tell_plain(args, result, nr, fd);
        return;
    case CLASS_PAIR_0:
    case CLASS_PAIR_3:
        tell_plain(args, result, nr, -1);
        return;
    case CLASS_LSEEK:
        if (result < 0 || set_position(pid, fd, (u64)result))
            tell_plain(args, result, nr, fd);
        return;
    case CLASS_OPENAT:
        tell_paths(args, result, nr, (u32)result, PATHS(1, 6));
        return;
    case CLASS_OPEN:
        tell_paths(args, result, nr, (u32)result, PATHS(0, 6));
        return;
    case CLASS_PATH_0:
        tell_paths(args, result, nr, -1, PATHS(0, 6));
        return;
    case CLASS_PATH_1:
        tell_paths(args, result, nr, -1, PATHS(1, 6));
        return;
    case CLASS_PATHS_01:
        tell_paths(args, result, nr, -1, PATHS(0, 1));
        return;
    case CLASS_PATHS_13:
        tell_paths(args, result, nr, -1, PATHS(1, 3));
        return;
    case CLASS_MMAP:
        on_mmap(process, args, result);
        if ((int)args->at[4] >= 0 && !(args->at[3] & 0x20)) /* MAP_ANONYMOUS */
            tell_plain(args, result, nr, (u32)args->at[4]);
        return;
    default:
        tell_plain(args, result, nr, fd);
    }
}

SEC("tp_btf/sys_exit")
int BPF_PROG(on_sys_exit, struct pt_regs *regs, long result)
{
    u32 nr = CALL_NUMBER(regs), pid = bpf_get_current_pid_tgid() >> 32;
    struct transfer t;
    struct process *process;
    if (nr >= CLASSES || !classes[nr])
        return 0;
    process = bpf_map_lookup_elem(&processes, &pid);
    if (!process)
        return 0;
    if (CALL_IS_32BIT(regs)) {
        tally(TALLY_32BIT);
        return 0;
    }
    tally(TALLY_CALLS);
    u32 class = classes[nr];
    t.args[0] = CALL_0(regs);
    t.args[1] = CALL_1(regs);
    t.args[2] = CALL_2(regs);
    t.args[3] = CALL_3(regs);
    t.args[4] = CALL_4(regs);
    t.args[5] = CALL_5(regs);
    t.result = result;
    t.nr = nr;
    if (class <= CLASS_SENDMSG)
        move_bytes(process, &t, class);
    else if (class == CLASS_COPY_01)
        move_inside(process, &t, (u32)t.args[1], (u32)t.args[0], t.args[3]);
    else if (class == CLASS_COPY_02)
        move_inside(process, &t, (u32)t.args[0], (u32)t.args[2], t.args[4]);
    else if (class == CLASS_TEE)
        move_inside(process, &t, (u32)t.args[0], (u32)t.args[1], t.args[2]);
    else
        on_other(process, pid, (struct arguments *)t.args, result, nr, class);
    return 0;
}

/* ---- the lives of processes ---- */

static __always_inline struct life *begin_life(u32 kind)
{
    struct life *life = reserve(sizeof *life);
    if (!life)
        return 0;
    begin(&life->head, kind, -1);
    life->read_calls = life->write_calls = life->read_bytes = life->written_bytes = 0;
    life->user_ns = life->system_ns = life->run_ns = 0;
    life->other = life->flags = 0;
    life->path[0] = 0;
    life->argument_bytes = 0;
    bpf_get_current_comm(life->comm, sizeof life->comm);
    return life;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
    u32 pid = bpf_get_current_pid_tgid() >> 32, child_pid = child->tgid;
    struct process *process = bpf_map_lookup_elem(&processes, &pid), fresh = {0};
    struct life *life;
    if (!process || child_pid == pid)
        return 0;
    walk(process, MOMENT_FORK, -1, 0);
    fresh.list = process->list;
    fresh.walker = process->walker;
    bpf_map_update_elem(&processes, &child_pid, &fresh, BPF_ANY);
    process->told = 0;
    life = begin_life(KIND_FORK);
    if (!life)
        return 0;
    life->other = child_pid;
    life->flags = parent->files == child->files;
    bpf_ringbuf_submit(life, 0);
    return 0;
}

/* The old memory is still there (kernel 6.10 and later). */
SEC("tp_btf/sched_prepare_exec")
int BPF_PROG(before_exec, struct task_struct *task, struct linux_binprm *program)
{
    u32 pid = bpf_get_current_pid_tgid() >> 32;
    struct process *process = bpf_map_lookup_elem(&processes, &pid);
    if (process)
        walk(process, MOMENT_EXEC, -1, 0);
    return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task, int old_pid, struct linux_binprm *program)
{
    u32 pid = bpf_get_current_pid_tgid() >> 32;
    struct process *process = bpf_map_lookup_elem(&processes, &pid);
    struct library_key key;
    struct library *library;
    struct life *life;
    if (!process)
        return 0;
    flush_range(pid, 0, 63);
    process->list = process->walker = 0;
    if (process->image == GATED) { /* what was read until now is weir's own start, and the kernel's */
        process->read_calls = -task->ioac.syscr;
        process->write_calls = -task->ioac.syscw;
        process->read_bytes = -task->ioac.rchar;
        process->written_bytes = -task->ioac.wchar;
    }
    process->image++;
    process->told = 0;
    key.ino = BPF_CORE_READ(program, file, f_inode, i_ino);
    key.size = BPF_CORE_READ(program, file, f_inode, i_size);
    library = bpf_map_lookup_elem(&libraries, &key);
    if (library && library->how) {
        u64 start = library->how == 1 ? BPF_CORE_READ(task, mm, start_code) : 0;
        process->list = start + library->offset;
        process->walker = library->walker;
    }
    life = begin_life(KIND_EXEC);
    if (!life)
        return 0;
    bpf_probe_read_kernel_str(life->path, PATH, BPF_CORE_READ(program, filename));
    u64 from = BPF_CORE_READ(task, mm, arg_start), bytes = BPF_CORE_READ(task, mm, arg_end) - from;
    if (bytes > PATH)
        bytes = PATH;
    if (bytes && bpf_probe_read_user(life->arguments, bytes & 255, (void *)from) == 0)
        life->argument_bytes = bytes;
    bpf_ringbuf_submit(life, 0);
    return 0;
}

/* Each thread comes here; the last one (`group_dead`) ends the process. Its memory is still there on kernel
 * 6.16 and later; before that, on_last_call looks. */
SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task, int group_dead)
{
    u32 pid = bpf_get_current_pid_tgid() >> 32;
    struct process *process = bpf_map_lookup_elem(&processes, &pid);
    struct life *life;
    if (!process)
        return 0;
    __sync_fetch_and_add(&process->read_calls, task->ioac.syscr);
    __sync_fetch_and_add(&process->write_calls, task->ioac.syscw);
    __sync_fetch_and_add(&process->read_bytes, task->ioac.rchar);
    __sync_fetch_and_add(&process->written_bytes, task->ioac.wchar);
    __sync_fetch_and_add(&process->user_ns, task->utime);
    __sync_fetch_and_add(&process->system_ns, task->stime);
    __sync_fetch_and_add(&process->run_ns, task->se.sum_exec_runtime);
    if (!group_dead)
        return 0;
    u32 status = task->signal->group_exit_code;
    if (!status)
        status = task->exit_code;
    walk(process, status & 0x7f ? MOMENT_SIGNAL : MOMENT_EXIT, -1, 0);
    flush_range(pid, 0, 63);
    life = begin_life(KIND_EXIT);
    if (life) {
        life->other = status;
        life->flags = process->high_fds;
        life->read_calls = process->read_calls;
        life->write_calls = process->write_calls;
        life->read_bytes = process->read_bytes;
        life->written_bytes = process->written_bytes;
        life->user_ns = process->user_ns;
        life->system_ns = process->system_ns;
        life->run_ns = process->run_ns;
        bpf_ringbuf_submit(life, 0);
    }
    bpf_map_delete_elem(&processes, &pid);
    return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
