/* lives.h: the handlers at fork, execve and exit: what is in the buffers at these moments, and what is done. */
#ifndef WEIR_LIVES_H
#define WEIR_LIVES_H

#include "buffers.h"
#include "count.h"
#include "flush.h"
#include "maps.h"

/* Tasks are read by bpf_probe_read_kernel, though the verifier would let them be read at once: it searches all of
 * the kernel's types for each such read, and a start would take longer by that. */

static __always_inline struct life *begin_life(u32 kind)
{
    struct life *life = reserve(sizeof *life);
    if (!life)
        return 0;
    begin(&life->head, kind, -1);
    life->read_calls = life->write_calls = life->read_bytes = life->written_bytes = 0;
    life->user_ns = life->system_ns = life->run_ns = life->queued_ns = life->fetched_bytes = 0;
    life->other = life->flags = 0;
    life->path[0] = 0;
    life->argument_bytes = 0;
    bpf_get_current_comm(life->comm, sizeof life->comm);
    return life;
}

/* After a fork the first writes are of interest again, whatever the stream has told before. */
static long tell_again(u32 i, void *context)
{
    struct low_fds *fds = context;
    if (!fds->left)
        return 1;
    struct stream_key key = {fds->pid, next_low(fds) * 2 + fds->writes};
    struct counts *counts = bpf_map_lookup_elem(&streams, &key);
    if (counts)
        counts->told = 0;
    return 0;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
    u32 pid = bpf_get_current_pid_tgid() >> 32, child_pid = BPF_CORE_READ(child, tgid);
    struct process *process = bpf_map_lookup_elem(&processes, &pid), fresh = {0};
    struct life *life;
    if (!process || child_pid == pid)
        return 0;
    walk(process, MOMENT_FORK, -1, 0);
    fresh.list = process->list;
    fresh.walker = process->walker;
    fresh.directory = process->directory;
    if (bpf_map_update_elem(&processes, &child_pid, &fresh, BPF_ANY) == 0)
        tally_by(TALLY_FOLLOWED, 1);
    struct low_fds writers = {process->streams[1], pid, 1};
    bpf_loop(LOW, tell_again, &writers, 0);
    life = begin_life(KIND_FORK);
    if (!life)
        return 0;
    life->other = child_pid;
    life->flags = BPF_CORE_READ(parent, files) == BPF_CORE_READ(child, files);
    submit(life, 0);
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
    flush_low(process, pid, EVERY_LOW);
    process->streams[0] = process->streams[1] = 0;
    process->list = process->walker = process->strangers = 0;
    if (process->image == GATED) { /* what was read until now is weir's own start, and the kernel's */
        process->read_calls = -BPF_CORE_READ(task, ioac.syscr);
        process->write_calls = -BPF_CORE_READ(task, ioac.syscw);
        process->read_bytes = -BPF_CORE_READ(task, ioac.rchar);
        process->written_bytes = -BPF_CORE_READ(task, ioac.wchar);
        process->fetched_bytes = -BPF_CORE_READ(task, ioac.read_bytes);
        process->queued_ns = -BPF_CORE_READ(task, sched_info.run_delay);
    }
    process->image++;
    key.ino = BPF_CORE_READ(program, file, f_inode, i_ino);
    key.size = BPF_CORE_READ(program, file, f_inode, i_size);
    library = bpf_map_lookup_elem(&libraries, &key);
    int plain = library && library->how == PLAIN;
    if (library && library->how && !plain) {
        u64 start = library->how == 1 ? BPF_CORE_READ(task, mm, start_code) : 0;
        process->list = start + library->offset;
        process->walker = library->walker;
    }
    life = begin_life(KIND_EXEC);
    if (!life)
        return 0;
    life->flags = plain;
    bpf_probe_read_kernel_str(life->path, PATH, BPF_CORE_READ(program, filename));
    u64 from = BPF_CORE_READ(task, mm, arg_start), bytes = BPF_CORE_READ(task, mm, arg_end) - from;
    if (bytes > PATH)
        bytes = PATH;
    if (bytes && bpf_probe_read_user(life->arguments, bytes & 255, (void *)from) == 0)
        life->argument_bytes = bytes;
    submit(life, !plain);
    return 0;
}

/* Each thread comes here; the last one (`group_dead`) ends the process. Its memory is still there on kernel
 * 6.16 and later, which first says who is the last. */
SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task, int group_dead)
{
    u32 pid = bpf_get_current_pid_tgid() >> 32;
    struct process *process = bpf_map_lookup_elem(&processes, &pid);
    struct life *life;
    if (!process)
        return 0;
    __sync_fetch_and_add(&process->read_calls, BPF_CORE_READ(task, ioac.syscr));
    __sync_fetch_and_add(&process->write_calls, BPF_CORE_READ(task, ioac.syscw));
    __sync_fetch_and_add(&process->read_bytes, BPF_CORE_READ(task, ioac.rchar));
    __sync_fetch_and_add(&process->written_bytes, BPF_CORE_READ(task, ioac.wchar));
    __sync_fetch_and_add(&process->user_ns, BPF_CORE_READ(task, utime));
    __sync_fetch_and_add(&process->system_ns, BPF_CORE_READ(task, stime));
    __sync_fetch_and_add(&process->run_ns, BPF_CORE_READ(task, se.sum_exec_runtime));
    __sync_fetch_and_add(&process->queued_ns, BPF_CORE_READ(task, sched_info.run_delay));
    __sync_fetch_and_add(&process->fetched_bytes, BPF_CORE_READ(task, ioac.read_bytes));
    if (!group_dead)
        return 0;
    u32 status = BPF_CORE_READ(task, signal, group_exit_code);
    if (!status)
        status = BPF_CORE_READ(task, exit_code);
    walk(process, status & 0x7f ? MOMENT_SIGNAL : MOMENT_EXIT, -1, 0);
    flush_low(process, pid, EVERY_LOW);
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
        life->queued_ns = process->queued_ns;
        life->fetched_bytes = process->fetched_bytes;
        /* What the kernel still has to do for the command takes a millisecond: weir makes its report meanwhile. */
        submit(life, process->command != 0);
    }
    if (bpf_map_delete_elem(&processes, &pid) == 0)
        tally_by(TALLY_FOLLOWED, -1);
    return 0;
}

#endif
