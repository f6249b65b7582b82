/* waits.bpf.c: measures the time for which calls on streams block. The program runs when a CPU switches between threads, so a
 * call that does not block costs nothing. The saved registers of a blocking thread name its call. It stays attached in sampling
 * gaps, where a busy process may start a long wait. */
#include "waits.h"
#include "open_file.h"

#define TASK_INTERRUPTIBLE_ 1
#define TASK_UNINTERRUPTIBLE_ 2
#define PF_EXITING_ 4

/* Returns the state of the current thread; null if it is not traced. */
static __always_inline struct thread_wait *wait_of_current(u32 pid, u32 tid)
{
    struct thread_wait *wait = bpf_map_lookup_elem(&waits, &tid), fresh = {0};
    struct task_struct *task = (void *)bpf_get_current_task();
    /* An exiting thread is not added: on_exit has deleted its state already. */
    if (wait || !bpf_map_lookup_elem(&processes, &pid) || BPF_CORE_READ(task, flags) & PF_EXITING_)
        return wait;
    bpf_map_update_elem(&waits, &tid, &fresh, BPF_NOEXIST);
    return bpf_map_lookup_elem(&waits, &tid);
}

/* Notes that the current thread blocks, and in which call. */
static __always_inline void begin_wait(void)
{
    u64 id = bpf_get_current_pid_tgid();
    struct stream_key stream = {id >> 32, 0};
    struct thread_wait *wait = wait_of_current(id >> 32, (u32)id);
    if (!wait)
        return;
    struct pt_regs *regs = saved_registers();
    u32 nr = SAVED_NUMBER(regs), class = nr < SYSCALL_NUMBERS ? classes[nr] : 0, fd = (u32)SAVED_0(regs);
    wait->since_ns = 0;
    if (!class || (class > CLASS_SENDMMSG && class != CLASS_SYNC))
        return;
    u64 now = bpf_ktime_get_ns();
    if (class == CLASS_SYNC) {
        if (!wait->sync_ns)
            wait->sync_ns = now;
        return;
    }
    u64 file = file_of(fd);
    stream.fd_out = fd * 2 + (class == CLASS_VMSPLICE ? !is_read_only(file) : class_writes(class));
    if (wait->stream.pid != stream.pid || wait->stream.fd_out != stream.fd_out || wait->file != file)
        wait->unclaimed_ns = 0;
    wait->stream = stream;
    wait->file = file;
    wait->since_ns = now;
    wait->sync_ns = 0;
}

/* Adds the time for which a thread that runs again has blocked to its stream. */
static __always_inline void end_wait(u32 tid)
{
    struct thread_wait *wait = bpf_map_lookup_elem(&waits, &tid);
    if (!wait || !wait->since_ns)
        return;
    u64 ns = bpf_ktime_get_ns() - wait->since_ns;
    wait->since_ns = 0;
    struct stream_counters *counters = bpf_map_lookup_elem(&streams, &wait->stream);
    if (!counters)
        wait->unclaimed_ns += ns;
    else if (counters->file.key == wait->file)
        __sync_fetch_and_add(&counters->wait_ns, ns);
}

/* `state`: that of the current thread; 0 if it is preempted, because a preempted thread can have such a state and does not block. */
static __always_inline int switch_thread(struct task_struct *to, unsigned int state)
{
    if (state & (TASK_INTERRUPTIBLE_ | TASK_UNINTERRUPTIBLE_))
        begin_wait();
    end_wait((u32)to->pid);
    return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, int preempt, struct task_struct *from, struct task_struct *to, unsigned int state)
{
    return switch_thread(to, preempt ? 0 : state);
}

#ifdef BEFORE_6_1
/* Before Linux 5.18 the tracepoint has no state. */
SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch_old, int preempt, struct task_struct *from, struct task_struct *to)
{
    struct task_struct___before_5_14 *before = (void *)from;
    struct task_struct___5_14 *since = (void *)from;
    unsigned int state =
        bpf_core_field_exists(since->__state) ? BPF_CORE_READ(since, __state) : (unsigned int)BPF_CORE_READ(before, state);
    return switch_thread(to, preempt ? 0 : state);
}
#endif
