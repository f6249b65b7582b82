/* vectors.bpf.c: see vectors.h. */
#include "vectors.h"

/* struct iovec */
struct io_vector {
    u64 base, bytes;
};

struct vector_sum {
    u64 address, bytes;
    u64 moved;     /* result of the call; 0 if it failed */
    u64 last_byte; /* address of the last of them */
};

static long add_vector(u32 i, void *context)
{
    struct vector_sum *sum = context;
    struct io_vector segment;
    if (bpf_probe_read_user(&segment, sizeof segment, (void *)(sum->address + i * sizeof segment)) != 0)
        return 1;
    if (sum->moved > sum->bytes && sum->moved - sum->bytes <= segment.bytes)
        sum->last_byte = segment.base + (sum->moved - sum->bytes) - 1;
    sum->bytes += segment.bytes;
    return 0;
}

/* Sets `requested_bytes` to the sum of up to READ_SEGMENTS segments, and `buffer` if all bytes that were moved are in the first
 * segment, otherwise `vector`, `segments` and `last_byte`. */
#ifdef BEFORE_6_1
GLOBAL_FUNCTION int read_current_vectors(u64 address, u64 segments)
#else
GLOBAL_FUNCTION int read_vectors(struct transfer *t, u64 address, u64 segments)
#endif
{
#ifdef BEFORE_6_1
    struct scratch_space *own = scratch();
    struct transfer *t = own ? &own->call : 0;
#endif
    if (!t)
        return 0;
    struct vector_sum sum = {address, 0, t->result > 0 ? t->result : 0, 0};
    struct io_vector first;
    t->buffer = 0;
    if (bpf_probe_read_user(&first, sizeof first, (void *)address) == 0 &&
        (segments == 1 || (t->result >= 0 && (u64)t->result <= first.bytes)))
        t->buffer = first.base;
    LOOP(READ_SEGMENTS, segments < READ_SEGMENTS ? segments : READ_SEGMENTS, add_vector, &sum);
    t->requested_bytes = sum.bytes;
    t->vector = t->buffer ? 0 : address;
    t->segments = segments;
    t->last_byte = sum.last_byte;
    return 0;
}

/* Appends the beginning of a segment to `head`. The state is in the scratch space, so that the verifier follows fewer paths. */
static long gather_segment(u32 i, void *context)
{
    struct scratch_space *own = scratch();
    struct io_vector segment;
    if (!own || own->head_bytes >= DATA_BYTES || own->head_left == 0 ||
        bpf_probe_read_user(&segment, sizeof segment, (void *)(own->call.vector + i * sizeof segment)) != 0)
        return 1;
    u64 bytes = segment.bytes < own->head_left ? segment.bytes : own->head_left;
    if (bytes > DATA_BYTES)
        bytes = DATA_BYTES;
    u8 *to = own->head + (own->head_bytes & (DATA_BYTES - 1));
    if (bytes && bpf_probe_read_user(to, bytes & 127, (void *)segment.base) != 0)
        return 1;
    own->head_bytes += bytes;
    own->head_left -= bytes;
    return 0;
}

GLOBAL_FUNCTION int gather_head(void)
{
    struct scratch_space *own = scratch();
    if (!own)
        return 0;
    own->head_bytes = 0;
    own->head_left = own->call.result > 0 ? own->call.result : 0;
    LOOP(HEAD_SEGMENTS, own->call.segments < HEAD_SEGMENTS ? own->call.segments : HEAD_SEGMENTS, gather_segment, 0);
    return own->head_bytes < DATA_BYTES ? own->head_bytes : DATA_BYTES;
}

/* struct mmsghdr */
struct message {
    u64 name, name_bytes, segments, count, control, control_bytes;
    u32 flags, pad;
    u32 bytes, end;
};
struct message_sum {
    u64 address, bytes;
    u32 flags;
    u32 unknown; /* 1: the bytes of a message are not in the sum */
};

/* Adds the bytes of a message. With MSG_TRUNC, `bytes` is the length of the datagram, of which the message may have only the
 * beginning. */
static long add_message(u32 i, void *context)
{
    struct message_sum *sum = context;
    u64 address = sum->address + i * sizeof(struct message);
    struct message message = {0};
    struct scratch_space *own = scratch();
    if (bpf_probe_read_user(&message.bytes, sizeof message.bytes, (void *)(address + 56)) != 0)
        sum->unknown = 1;
    if (sum->flags & MSG_TRUNC_ && bpf_probe_read_user(&message, sizeof message, (void *)address) == 0 &&
        message.flags & MSG_TRUNC_ && own) {
        read_vectors(&own->call, message.segments, message.count);
        if (message.count > READ_SEGMENTS)
            sum->unknown = 1;
        if (message.bytes > own->call.requested_bytes)
            message.bytes = own->call.requested_bytes;
    }
    sum->bytes += message.bytes;
    return 0;
}

/* A call has at most 1024 messages (UIO_MAXIOV). */
#ifdef BEFORE_6_1
enum { READ_MESSAGES = 64 }; /* the verifier follows each of them */
GLOBAL_FUNCTION int read_current_messages(u64 address, u64 messages, u32 flags)
#else
enum { READ_MESSAGES = 1024 };
GLOBAL_FUNCTION int read_messages(struct transfer *t, u64 address, u64 messages, u32 flags)
#endif
{
#ifdef BEFORE_6_1
    struct scratch_space *own = scratch();
    struct transfer *t = own ? &own->call : 0;
#endif
    if (!t)
        return 0;
    struct message_sum sum = {address, 0, flags, messages > READ_MESSAGES};
    LOOP(READ_MESSAGES, messages < READ_MESSAGES ? messages : READ_MESSAGES, add_message, &sum);
    t->result = t->requested_bytes = sum.bytes;
    if (sum.unknown)
        tally(TALLY_UNKNOWN_BYTES);
    return 0;
}
