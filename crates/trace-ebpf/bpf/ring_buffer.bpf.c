/* ring_buffer.bpf.c: decides when the ring buffer's consumer is woken. */
#include "ring_buffer.h"

static __always_inline int crosses(u64 unread, u64 bytes)
{
    return unread >= bytes && unread < bytes + 1024; /* 1024: more than the largest event */
}

/* weir polls the ring buffer every few milliseconds, because each wakeup costs the traced program more than many calls do.
 * It is woken for urgent events (`now`), unless it is far behind and therefore busy already, and whenever a quarter
 * or half of the ring buffer has filled up. */
GLOBAL_FUNCTION int wakeup_flags(int now)
{
    u64 unread = bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA);
    int wake = (now && unread <= event_bytes / 16) || crosses(unread, event_bytes / 4) || crosses(unread, event_bytes / 2);
    return wake ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
}
