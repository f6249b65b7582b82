/* signals.bpf.c: emits the signals that processes send to traced ones. A signal to the process group reaches weir too, which
 * forwards its copy only if the command has received none. */
#include "ring_buffer.h"

/* SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGTERM and SIGTSTP, which weir forwards. */
#define FORWARDED (1 << 1 | 1 << 2 | 1 << 3 | 1 << 10 | 1 << 12 | 1 << 15 | 1 << 20)

SEC("tp_btf/signal_generate")
int BPF_PROG(on_signal, int number, void *info, struct task_struct *task)
{
    u32 pid = BPF_CORE_READ(task, tgid);
    /* 0 and 1 are SEND_SIG_NOINFO and SEND_SIG_PRIV: the kernel sends the signal. */
    if (number < 0 || number > 31 || !(FORWARDED >> number & 1) || (u64)info <= 1 || !bpf_map_lookup_elem(&processes, &pid))
        return 0;
    struct event_head *event = reserve(sizeof *event);
    if (!event)
        return 0;
    fill_head(event, KIND_SIGNAL, number);
    event->tid = pid;
    submit(event, 1);
    return 0;
}
