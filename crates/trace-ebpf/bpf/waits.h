/* waits.h: the time for which a thread blocked in calls on streams. */
#ifndef WEIR_WAITS_H
#define WEIR_WAITS_H

#include "maps.h"

/* Returns the time for which the current thread blocked in calls on a stream that had no counters, and resets it. */
static __always_inline u64 claim_wait(const struct stream_key *stream, u64 file)
{
    u32 tid = (u32)bpf_get_current_pid_tgid();
    struct thread_wait *wait = bpf_map_lookup_elem(&waits, &tid);
    if (!wait || wait->stream.pid != stream->pid || wait->stream.fd_out != stream->fd_out || wait->file != file)
        return 0;
    u64 ns = wait->unclaimed_ns;
    wait->unclaimed_ns = 0;
    return ns;
}

/* Returns the time at which the CLASS_SYNC call that has just returned first blocked, and resets it; the present time if it did
 * not block. */
static __always_inline u64 sync_blocked_since(void)
{
    u32 tid = (u32)bpf_get_current_pid_tgid();
    struct thread_wait *wait = bpf_map_lookup_elem(&waits, &tid);
    u64 since = wait ? wait->sync_ns : 0;
    if (since)
        wait->sync_ns = 0;
    return since ? since : bpf_ktime_get_ns();
}

#endif
