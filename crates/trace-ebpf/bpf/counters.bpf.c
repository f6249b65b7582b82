/* counters.bpf.c: creates a stream's counters, and emits its first, failed and short calls one by one. */
#include "counters.h"
#include "buffers.h"
#include "open_file.h"
#include "ring_buffer.h"
#include "vectors.h"
#include "waits.h"

/* Returns the offset at which the call began. The open file's offset has already advanced when the program runs. */
static __always_inline u64 start_offset(const struct stream_counters *counters, const struct transfer *t)
{
    if (t->position >= 0)
        return t->position;
    return t->result > 0 ? counters->file.pos - t->result : counters->file.pos;
}

/* Returns the offset at which a call began that is in the counters already. */
static __always_inline u64 counted_offset(const struct stream_counters *counters, const struct transfer *t)
{
    if (t->position >= 0)
        return t->position;
    return counters->regular && t->result > 0 ? counters->position - t->result : counters->position;
}

/* Notes that the descriptor has counters. Its bit stays set when the stream ends; a lookup of a missing stream is harmless.
 * BEFORE_6_1 adds the bit instead, so only the thread that has created the stream may call it: another one would carry into the
 * next bit. */
static __always_inline void note_fd(struct process_state *process, const struct transfer *t)
{
    u64 *bits = &process->fd_bits[t->writes & 1], bit = 1ULL << (t->fd & (LOW_FDS - 1));
    if (t->fd >= LOW_FDS)
        process->high_fds = 1;
#ifdef BEFORE_6_1
    else if (!(*(volatile u64 *)bits & bit))
        __sync_fetch_and_add(bits, bit);
#else
    else
        __sync_fetch_and_or(bits, bit);
#endif
}

/* Returns the counters of a new stream; null if the map is full. */
static __always_inline struct stream_counters *create_stream(struct process_state *process, u32 pid,
                                                             const struct transfer *t)
{
    struct stream_key key = {pid, t->fd * 2 + t->writes};
    struct stream_counters *counters;
    struct scratch_space *own = scratch();
    u64 file = file_of(t->fd);
    if (!own)
        return 0;
    struct stream_counters *fresh = &own->counters;
    __builtin_memset(fresh, 0, sizeof *fresh);
    fill_head(&fresh->head, KIND_COUNTERS, t->fd);
    if (file)
        read_open_file(&fresh->file, file);
    fresh->first_ns = fresh->head.ns;
    fresh->writes = t->writes;
    fresh->regular = (fresh->file.mode & 0170000) == 0100000;
    fresh->position = start_offset(fresh, t);
    fresh->wait_ns = claim_wait(&key, file);
#ifndef BEFORE_6_1
    note_fd(process, t);
#endif
    if (bpf_map_update_elem(&streams, &key, fresh, BPF_NOEXIST) == 0) {
#ifdef BEFORE_6_1
        note_fd(process, t);
#endif
        tally_by(TALLY_STREAMS, 1);
    }
    counters = bpf_map_lookup_elem(&streams, &key); /* another thread may have added it first */
    if (!counters)
        tally(TALLY_LOST_STREAMS);
    return counters;
}

/* The first call of a stream after a sampling gap, at whose start weir took the counts. If the descriptor refers to
 * another file by now, it is another stream. */
GLOBAL_FUNCTION int resume_after_gap(struct stream_counters *counters, const struct transfer *t)
{
    if (!counters || !t)
        return 0;
    u64 key = counters->file.key, ino = counters->file.ino;
    u64 file = file_of(t->fd);
    counters->stale = 0;
    counters->first_ns = bpf_ktime_get_ns();
    if (!file)
        return 0;
    read_open_file(&counters->file, file);
    if (counters->file.key != key || counters->file.ino != ino) {
        counters->emitted = counters->failed = 0;
        counters->high_offset = counters->wait_ns = 0;
        counters->regular = (counters->file.mode & 0170000) == 0100000;
    }
    counters->position = start_offset(counters, t);
    return 0;
}

/* Returns the address of the last byte that a call has moved; 0 if it is unknown. */
static __always_inline u64 last_byte_of(const struct transfer *t)
{
    return t->buffer ? t->buffer + t->result - 1 : t->last_byte;
}

GLOBAL_FUNCTION int emit_counted_call(const struct transfer *t, const struct stream_counters *counters, int tail)
{
    struct call_event *call;
    if (!t || !counters)
        return 0;
    struct scratch_space *own = t->writes && t->vector ? scratch() : 0;
    u32 gathered = own ? gather_head() : 0;
    if (!(call = reserve_for_call(sizeof *call)))
        return 0;
    fill_head(&call->head, KIND_CALL, t->fd);
    call->file = counters->file;
    call->file.pos = counted_offset(counters, t);
    __builtin_memcpy(call->args, t->args, sizeof call->args);
    call->args[2] = t->requested_bytes;
    call->result = t->result;
    call->nr = t->nr;
    call->counted = 1;
    call->tail = tail;
    call->data_bytes = 0;
    u64 bytes = t->result > 0 && t->buffer ? t->result : 0;
    if (bytes > DATA_BYTES)
        bytes = DATA_BYTES;
    if (bytes && bpf_probe_read_user(call->data, bytes & 127, (void *)t->buffer) == 0)
        call->data_bytes = bytes;
    if (own) {
        call->data_bytes = gathered;
        __builtin_memcpy(call->data, own->head, DATA_BYTES);
    }
    submit(call, 0);
    return 0;
}

/* Selects the first calls of a stream or after a fork (which resets `emitted`), and failed and short calls. */
static __always_inline int is_emitted(struct stream_counters *counters, const struct transfer *t)
{
    if (counters->emitted < FIRST_CALLS) {
        counters->emitted++;
        return 1;
    }
    if ((t->result < 0 || (t->writes && (u64)t->result < t->requested_bytes)) && t->result != -EAGAIN_) {
        counters->failed++;
        return counters->failed < FAILED_CALLS;
    }
    return 0;
}

/* Walks the buffers, unless the call is a stream's first read in a process that reads files without stdio (a compiler reads
 * hundreds, by one call each): the walk costs as much as the other work for the file. A stream that is read through stdio has
 * a second call, at least for its end of file. */
static __always_inline void walk_buffers_at_call(struct process_state *process, u32 fd, u64 buffer, int first_read)
{
    if (!process || (first_read && process->unbuffered_streams >= UNBUFFERED_STREAMS))
        return;
    int found = walk_buffers(process, MOMENT_SAMPLE, fd, buffer);
    if (found)
        process->unbuffered_streams = 0;
    else if (first_read)
        process->unbuffered_streams++;
}

/* Emits a call after the pending bytes in the process's buffers. */
GLOBAL_FUNCTION int emit_call_with_buffers(const struct transfer *t, struct stream_counters *counters, int tail)
{
    u32 pid = bpf_get_current_pid_tgid() >> 32;
    if (!t || !counters)
        return 0;
    if (tail < 0 && t->writes && t->result == 1 && last_byte_of(t)) {
        u8 last = 0;
        if (bpf_probe_read_user(&last, 1, (void *)last_byte_of(t)) == 0)
            tail = last;
    }
    walk_buffers_at_call(bpf_map_lookup_elem(&processes, &pid), t->fd, t->buffer,
                         counters->emitted == 1 && !t->writes);
    return emit_counted_call(t, counters, tail);
}

/* Counts a call. A known stream takes one map lookup: only traced processes have streams. */
static __always_inline int count(const struct transfer *t)
{
    u32 pid = bpf_get_current_pid_tgid() >> 32;
    struct stream_key key = {pid, t->fd * 2 + t->writes};
    struct stream_counters *counters = bpf_map_lookup_elem(&streams, &key);
    struct process_state *process;
    int tail = -1, retried = 0;
    if (!counters) {
        process = bpf_map_lookup_elem(&processes, &pid);
        if (!process || t->result == -EBADF_)
            return 0;
        counters = create_stream(process, pid, t);
        if (!counters)
            return 0;
    }
    if (counters->stale)
        resume_after_gap(counters, t);
    tally(TALLY_CALLS);
    if (t->result >= 0) {
        u64 moved = t->result;
        u32 slot = size_slot(moved), requested = size_slot(t->requested_bytes);
        count_size(counters, slot, moved);
        if (requested != slot)
            __sync_fetch_and_add(&counters->other_requested_sizes[requested % SIZE_SLOTS], 1);
        if (moved < t->requested_bytes) {
            if (moved == 0)
                counters->zeros++;
            else
                counters->shorts++;
        }
        if (counters->regular && moved)
            count_position(counters, moved, t->position);
        if (t->writes && moved > 1 && last_byte_of(t))
            tail = count_last_byte(counters, last_byte_of(t));
    } else if (t->result == -EAGAIN_ || t->result == -EINTR_ || t->result <= -512) {
        retried = 1; /* ERESTARTSYS (512) and its kin: the kernel restarts the call */
        __sync_fetch_and_add(&counters->again, 1);
    } else {
        __sync_fetch_and_add(&counters->errors, 1);
    }
    if (t->requested_bytes > counters->max_requested_bytes)
        counters->max_requested_bytes = t->requested_bytes;
    if (t->in_kernel)
        counters->in_kernel++;
    if (!retried || !counters->last_ns)
        stamp(counters);
    if (!t->leaves_input && is_emitted(counters, t))
        emit_call_with_buffers(t, counters, tail);
    return 0;
}

#ifdef BEFORE_6_1
GLOBAL_FUNCTION int count_current_call(void)
{
    struct scratch_space *own = scratch();
    return own ? count(&own->call) : 0;
}
#else
GLOBAL_FUNCTION int count_call(const struct transfer *t) { return t ? count(t) : 0; }
#endif
