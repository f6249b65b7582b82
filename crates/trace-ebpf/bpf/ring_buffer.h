/* ring_buffer.h: reserves, fills and submits events. */
#ifndef WEIR_RING_BUFFER_H
#define WEIR_RING_BUFFER_H

#include "maps.h"

/* Returns the flags for bpf_ringbuf_submit(): whether to wake weir now. */
int wakeup_flags(int now);

static __always_inline void *reserve(u64 bytes)
{
    void *event = bpf_ringbuf_reserve(&events, bytes, 0);
    if (!event)
        tally(TALLY_LOST_EVENTS);
    return event;
}

/* Like reserve(), but leaves the last quarter of the ring buffer to counters and lifecycle events. */
static __always_inline void *reserve_for_call(u64 bytes)
{
    if (bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) > event_bytes / 4 * 3) {
        tally(TALLY_LOST_EVENTS);
        return 0;
    }
    return reserve(bytes);
}

static __always_inline void submit(void *event, int wake_now) { bpf_ringbuf_submit(event, wakeup_flags(wake_now)); }

static __always_inline void fill_head(struct event_head *head, u32 kind, u32 fd)
{
    u64 id = bpf_get_current_pid_tgid();
    head->ns = bpf_ktime_get_ns();
    head->kind = kind;
    head->pid = id >> 32;
    head->tid = (u32)id;
    head->fd = fd;
}

#endif
