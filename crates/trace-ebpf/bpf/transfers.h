/* transfers.h: finds out what a call that moves bytes has moved, and counts it in its streams. */
#ifndef WEIR_TRANSFERS_H
#define WEIR_TRANSFERS_H

#include "counters.h"
#include "open_file.h"
#include "vectors.h"

/* Makes the call one that requested nothing and moved nothing. */
static __always_inline void leave_input(struct transfer *t)
{
    t->leaves_input = 1;
    t->requested_bytes = 0;
    if (t->result > 0)
        t->result = 0;
}

/* Flags of a receive with which its result is not the number of bytes that it moved. */
#define MEASURING_FLAGS (MSG_PEEK_ | MSG_ERRQUEUE_ | MSG_TRUNC_)

/* Corrects the bytes of a receive with such flags. Forgets its buffer, into which the kernel may have copied fewer bytes than the
 * result, or none. With MSG_TRUNC, the result is the length of a datagram, the end of which may have been discarded. */
static __always_inline void apply_receive_flags(struct transfer *t, u32 class, u64 flags, u64 segments)
{
    if (!(flags & MEASURING_FLAGS))
        return;
    t->buffer = 0;
    if (flags & (MSG_PEEK_ | MSG_ERRQUEUE_)) {
        leave_input(t);
    } else if (class != CLASS_RECVMMSG && t->result > 0 && (u64)t->result > t->requested_bytes) {
        t->result = t->requested_bytes;
        if (segments > READ_SEGMENTS)
            tally(TALLY_UNKNOWN_BYTES);
    }
}

static __always_inline void on_transfer(struct transfer *t, u32 class)
{
    struct {
        u64 name, name_bytes, segments, count;
    } message; /* the beginning of struct msghdr */
    t->fd = (u32)t->args[0];
    t->writes = class == CLASS_VMSPLICE ? !is_read_only(file_of(t->fd)) : class_writes(class);
    t->leaves_input = 0;
    t->buffer = t->args[1];
    t->requested_bytes = t->args[2];
    t->vector = t->last_byte = 0;
    t->position = -1;
    t->in_kernel = 0;
    if (class == CLASS_PREAD || class == CLASS_PWRITE || class == CLASS_PREADV || class == CLASS_PWRITEV)
        t->position = t->args[3];
    if (class >= CLASS_READV && class <= CLASS_VMSPLICE) {
        read_vectors(t, t->args[1], t->args[2]);
    } else if (class == CLASS_RECVMSG || class == CLASS_SENDMSG) {
        t->requested_bytes = t->buffer = message.count = 0;
        if (bpf_probe_read_user(&message, sizeof message, (void *)t->args[1]) == 0)
            read_vectors(t, message.segments, message.count);
        if (class == CLASS_RECVMSG)
            apply_receive_flags(t, class, t->args[2], message.count);
    } else if (class == CLASS_RECVMMSG || class == CLASS_SENDMMSG) {
        t->requested_bytes = t->buffer = 0;
        if (t->result > 0)
            read_messages(t, t->args[1], t->result, class == CLASS_RECVMMSG ? (u32)t->args[3] : 0);
        if (class == CLASS_RECVMMSG)
            apply_receive_flags(t, class, t->args[3], 0);
    } else if (class == CLASS_RECVFROM) {
        apply_receive_flags(t, class, t->args[3], 1);
    }
    count_call(t);
}

/* Returns the offset at which a copy within the kernel began, from the address of an offset, which the kernel has advanced; -1, as in
 * `position`, if there is none. */
static __always_inline s64 offset_before(u64 address, s64 result)
{
    s64 offset = -1;
    if (!address || bpf_probe_read_user(&offset, sizeof offset, (void *)address) != 0)
        return -1;
    return result > 0 ? offset - result : offset;
}

/* sendfile(2), splice(2) …: counts the bytes in both streams; those of tee(2) in its output only. */
static __always_inline void on_kernel_transfer(struct transfer *t, u32 class)
{
    u32 in = (u32)t->args[0], out = (u32)t->args[1];
    u64 in_offset = 0, out_offset = 0; /* addresses */
    s64 result = t->result;
    t->requested_bytes = t->args[2];
    t->leaves_input = 0;
    if (class == CLASS_COPY_01) {
        in = (u32)t->args[1];
        out = (u32)t->args[0];
        in_offset = t->args[2];
        t->requested_bytes = t->args[3];
    } else if (class == CLASS_COPY_02) {
        out = (u32)t->args[2];
        in_offset = t->args[1];
        out_offset = t->args[3];
        t->requested_bytes = t->args[4];
    }
    t->buffer = t->vector = t->last_byte = 0;
    t->position = offset_before(in_offset, result);
    t->in_kernel = 1;
    t->fd = in;
    t->writes = 0;
    if (class == CLASS_TEE)
        leave_input(t);
    count_call(t);
    if (class == CLASS_TEE) {
        t->leaves_input = 0;
        t->requested_bytes = t->args[2];
        t->result = result;
    }
    t->position = offset_before(out_offset, result);
    t->fd = out;
    t->writes = 1;
    count_call(t);
}

#endif
