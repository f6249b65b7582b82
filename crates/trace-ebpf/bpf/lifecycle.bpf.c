/* lifecycle.bpf.c: programs at fork, execve(2) and exit. They take a buffer snapshot and emit the counters of streams
 * that end.
 *
 * Tasks are read by BPF_CORE_READ(), though the verifier would allow direct access: it searches all of the kernel's types
 * for each direct access, which makes loading slower. */
#include "buffers.h"
#include "directory.h"
#include "flush.h"
#include "ring_buffer.h"

static __always_inline struct lifecycle_event *reserve_lifecycle(u32 kind)
{
    struct lifecycle_event *event = reserve(sizeof *event);
    if (!event)
        return 0;
    fill_head(&event->head, kind, -1);
    event->read_calls = event->write_calls = event->read_bytes = event->written_bytes = 0;
    event->user_ns = event->system_ns = event->run_ns = event->queued_ns = event->fetched_bytes = 0;
    event->child = event->status = event->flags = event->argument_bytes = 0;
    event->path[0] = 0;
    bpf_get_current_comm(event->comm, sizeof event->comm);
    return event;
}

/* Resets `emitted` of a stream, so that its first writes after a fork are emitted. */
static long reset_emitted(u32 i, void *context)
{
    struct low_fds *fds = context;
    if (!fds->left)
        return 1;
    struct stream_key key = {fds->pid, take_lowest_fd(fds) * 2 + fds->writes};
    struct stream_counters *counters = bpf_map_lookup_elem(&streams, &key);
    if (counters)
        counters->emitted = 0;
    return 0;
}

static __always_inline int add_child(struct task_struct *parent, struct task_struct *child)
{
    u32 pid = bpf_get_current_pid_tgid() >> 32, child_pid = BPF_CORE_READ(child, tgid);
    struct process_state *process = bpf_map_lookup_elem(&processes, &pid), fresh = {0};
    struct lifecycle_event *event;
    if (!process || child_pid == pid)
        return 0;
    walk_buffers(process, MOMENT_FORK, -1, 0);
    fresh.list = process->list;
    fresh.walker = process->walker;
    fresh.directory = process->directory;
    if (bpf_map_update_elem(&processes, &child_pid, &fresh, BPF_ANY) == 0)
        tally_by(TALLY_PROCESSES, 1);
    else
        tally(TALLY_LOST_PROCESSES);
    struct low_fds writers = {process->fd_bits[1], pid, 1};
    LOOP(LOW_FDS, LOW_FDS, reset_emitted, &writers);
    event = reserve_lifecycle(KIND_FORK);
    if (!event)
        return 0;
    event->child = child_pid;
    event->flags = BPF_CORE_READ(parent, files) == BPF_CORE_READ(child, files);
    event->flags |= (BPF_CORE_READ(parent, mm) == BPF_CORE_READ(child, mm)) * 2;
    submit(event, 0);
    return 0;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child) { return UNPREEMPTED(add_child(parent, child)); }

/* Runs before execve(2) replaces the memory. */
static __always_inline int begin_exec(void)
{
    u32 pid = bpf_get_current_pid_tgid() >> 32;
    struct process_state *process = bpf_map_lookup_elem(&processes, &pid);
    if (process)
        walk_buffers(process, MOMENT_EXEC, -1, 0);
    return 0;
}

/* src/hooks.rs says which of these is loaded. */
SEC("tp_btf/sched_prepare_exec")
int BPF_PROG(before_exec, struct task_struct *task, struct linux_binprm *program) { return UNPREEMPTED(begin_exec()); }
SEC("fentry/begin_new_exec")
int BPF_PROG(before_exec_f, struct linux_binprm *program) { return begin_exec(); }
SEC("kprobe/begin_new_exec")
int before_exec_k(struct pt_regs *regs) { return begin_exec(); }

/* Deletes the map entries of the thread `tid`. */
static __always_inline void forget_thread(u32 tid)
{
    bpf_map_delete_elem(&waits, &tid);
    if (preemptible)
        bpf_map_delete_elem(&thread_scratch_spaces, &tid);
}

/* Subtracts the calls, bytes and waits of the task until now: those of weir's code before the first execve(2), and the kernel's
 * own reads at this execve(2). */
static __always_inline void subtract_gate(struct process_state *process, struct task_struct *task)
{
    process->read_calls = -BPF_CORE_READ(task, ioac.syscr);
    process->write_calls = -BPF_CORE_READ(task, ioac.syscw);
    process->read_bytes = -BPF_CORE_READ(task, ioac.rchar);
    process->written_bytes = -BPF_CORE_READ(task, ioac.wchar);
    process->fetched_bytes = -BPF_CORE_READ(task, ioac.read_bytes);
    process->queued_ns = -BPF_CORE_READ(task, sched_info.run_delay);
}

static __always_inline int end_exec(struct task_struct *task, int old_pid, struct linux_binprm *program)
{
    u32 pid = bpf_get_current_pid_tgid() >> 32;
    struct process_state *process = bpf_map_lookup_elem(&processes, &pid);
    struct library_key key;
    struct library *library;
    struct lifecycle_event *event;
    if (!process)
        return 0;
    flush_range(process, pid, 0, ~0U);
    if (preemptible && (u32)old_pid != pid) /* a thread other than the first takes over the first one's TID */
        forget_thread((u32)old_pid);
    process->fd_bits[0] = process->fd_bits[1] = 0;
    process->list = process->walker = process->unbuffered_streams = 0;
    process->written_at = process->written_end = process->has_last_writes = 0;
    if (process->image == IMAGE_GATED)
        subtract_gate(process, task);
    process->image++;
    key.ino = BPF_CORE_READ(program, file, f_inode, i_ino);
    key.size = BPF_CORE_READ(program, file, f_inode, i_size);
    library = bpf_map_lookup_elem(&libraries, &key);
    int plain = library && library->base == LIST_IN_LIBRARY;
    if (library && library->base && !plain) {
        u64 start = library->base == LIST_IN_CODE ? BPF_CORE_READ(task, mm, start_code) : 0;
        process->list = start + library->offset;
        process->walker = library->walker;
    }
    report_directory(process);
    event = reserve_lifecycle(KIND_EXEC);
    if (!event)
        return 0;
    event->flags = plain;
    bpf_probe_read_kernel_str(event->path, PATH_BYTES, BPF_CORE_READ(program, filename));
    u64 from = BPF_CORE_READ(task, mm, arg_start), bytes = BPF_CORE_READ(task, mm, arg_end) - from;
    if (bytes > PATH_BYTES)
        bytes = PATH_BYTES;
    if (bytes && bpf_probe_read_user(event->arguments, bytes & 255, (void *)from) == 0)
        event->argument_bytes = bytes;
    submit(event, !plain);
    return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task, int old_pid, struct linux_binprm *program)
{
    return UNPREEMPTED(end_exec(task, old_pid, program));
}

static __always_inline void add_thread(struct process_state *process, struct task_struct *task)
{
    __sync_fetch_and_add(&process->read_calls, BPF_CORE_READ(task, ioac.syscr));
    __sync_fetch_and_add(&process->write_calls, BPF_CORE_READ(task, ioac.syscw));
    __sync_fetch_and_add(&process->read_bytes, BPF_CORE_READ(task, ioac.rchar));
    __sync_fetch_and_add(&process->written_bytes, BPF_CORE_READ(task, ioac.wchar));
    __sync_fetch_and_add(&process->user_ns, BPF_CORE_READ(task, utime));
    __sync_fetch_and_add(&process->system_ns, BPF_CORE_READ(task, stime));
    __sync_fetch_and_add(&process->run_ns, BPF_CORE_READ(task, se.sum_exec_runtime));
    __sync_fetch_and_add(&process->queued_ns, BPF_CORE_READ(task, sched_info.run_delay));
    __sync_fetch_and_add(&process->fetched_bytes, BPF_CORE_READ(task, ioac.read_bytes));
}

static __always_inline void copy_totals(struct lifecycle_event *event, const struct process_state *process)
{
    event->read_calls = process->read_calls;
    event->write_calls = process->write_calls;
    event->read_bytes = process->read_bytes;
    event->written_bytes = process->written_bytes;
    event->user_ns = process->user_ns;
    event->system_ns = process->system_ns;
    event->run_ns = process->run_ns;
    event->queued_ns = process->queued_ns;
    event->fetched_bytes = process->fetched_bytes;
}

/* Notes that the current thread's last write(2) wrote the bytes from `begin` to `end` of those up to `asked_end`. */
static __always_inline void add_last_write(struct process_state *process, u64 begin, u64 end, u64 asked_end)
{
    struct last_write_key key = {bpf_get_current_pid_tgid() >> 32, process->image, asked_end};
    struct last_write write = {begin, end};
    if (bpf_map_update_elem(&last_writes, &key, &write, BPF_ANY) == 0)
        process->has_last_writes = 1;
}

/* A thread that a signal or another thread's execve(2) ends at the return of write(2) leaves the written bytes in its
 * stream's buffer. They are not lost.
 *
 * A thread that ended in user mode may have returned from such a call a moment before. Then its registers still have the
 * result and the address. In any other thread they have numbers that fit no stream: skip_last_write() compares both ends. Such a
 * call has written all of its bytes, because after a short write a stream calls write(2) again. */
static __always_inline void note_last_write(struct process_state *process)
{
    struct pt_regs *regs = saved_registers();
    u32 nr = SAVED_NUMBER(regs);
    s64 result = SAVED_RESULT(regs);
    u64 at = SAVED_1(regs);
    int in_user_mode = nr >= SYSCALL_NUMBERS;
    if (!in_user_mode && classes[nr] != CLASS_WRITE)
        return;
    if (result > 0)
        add_last_write(process, at, at + result, at + (in_user_mode ? result : SAVED_2(regs)));
    if (in_user_mode || (result <= 0 && process->written_at))
        return;
    process->written_at = at;
    process->written_end = at + (result > 0 ? result : 0);
}

/* Returns whether a thread exits because another one has called execve(2). */
static __always_inline int ends_by_exec(struct task_struct *task)
{
    struct signal_struct *signal = BPF_CORE_READ(task, signal);
    return bpf_core_field_exists(signal->group_exec_task) && BPF_CORE_READ(signal, group_exec_task) != 0;
}

static __always_inline u32 exit_status(struct task_struct *task)
{
    u32 status = BPF_CORE_READ(task, signal, group_exit_code);
    return status ? status : (u32)BPF_CORE_READ(task, exit_code);
}

/* Emits the end of a process. */
static __always_inline void emit_exit(struct process_state *process, u32 pid, u32 status)
{
    struct lifecycle_event *event;
    flush_low_fds(process, pid, ALL_LOW_FDS);
    event = reserve_lifecycle(KIND_EXIT);
    if (event) {
        event->status = status;
        event->flags = process->high_fds;
        copy_totals(event, process);
        /* For the command weir is woken now: it writes its report in the millisecond that the kernel needs to free the
         * process. */
        submit(event, process->command != 0);
    }
    if (bpf_map_delete_elem(&processes, &pid) == 0)
        tally_by(TALLY_PROCESSES, -1);
}

/* Runs at the exit of each thread; `group_dead` marks the last one of the process. The memory is still mapped. */
static __always_inline int exit_thread(struct task_struct *task, int group_dead)
{
    u32 pid = bpf_get_current_pid_tgid() >> 32, tid = (u32)bpf_get_current_pid_tgid();
    struct process_state *process = bpf_map_lookup_elem(&processes, &pid);
    if (!process)
        return 0;
    add_thread(process, task);
    note_last_write(process);
    if (!group_dead) {
        /* These threads continued to write after before_exec(). The bytes that the last of them leaves pending are lost. */
        if (ends_by_exec(task))
            walk_buffers(process, MOMENT_EXEC, -1, 0);
    } else {
        u32 status = exit_status(task);
        walk_buffers(process, status & 0x7f ? MOMENT_SIGNAL : MOMENT_EXIT, -1, 0);
        emit_exit(process, pid, status);
    }
    forget_thread(tid);
    return 0;
}

/* src/hooks.rs says which of these is loaded. Since Linux 6.16 the tracepoint has the argument `group_dead`, and fires before the
 * memory is unmapped. Both hold for taskstats_exit() since 2006. */
SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task, int group_dead) { return UNPREEMPTED(exit_thread(task, group_dead)); }
SEC("fentry/taskstats_exit")
int BPF_PROG(on_exit_f, struct task_struct *task, int group_dead) { return exit_thread(task, group_dead); }
SEC("kprobe/taskstats_exit")
int on_exit_k(struct pt_regs *regs)
{
    return exit_thread((struct task_struct *)FUNCTION_0(regs), (int)FUNCTION_1(regs));
}

/* For kernels without taskstats_exit(): the memory is unmapped already, so there is no buffer snapshot. Of threads that exit at
 * the same time several may see `live` at 0; the totals of all but the first are missing then, which the report says. */
SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit_late, struct task_struct *task)
{
    u32 pid = bpf_get_current_pid_tgid() >> 32, tid = (u32)bpf_get_current_pid_tgid();
    struct process_state *process = bpf_map_lookup_elem(&processes, &pid);
    if (!process)
        return 0;
    add_thread(process, task);
    if (BPF_CORE_READ(task, signal, live.counter) == 0)
        emit_exit(process, pid, exit_status(task));
    forget_thread(tid);
    return 0;
}
