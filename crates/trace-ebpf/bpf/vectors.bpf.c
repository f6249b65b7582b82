/* vectors.bpf.c: see vectors.h. */
#include "vectors.h"

/* struct iovec */
struct io_vector {
    u64 base, bytes;
};

struct vector_sum {
    u64 address, bytes;
};
static long add_vector(u32 i, void *context)
{
    struct vector_sum *sum = context;
    struct io_vector part;
    if (bpf_probe_read_user(&part, sizeof part, (void *)(sum->address + i * sizeof part)) != 0)
        return 1;
    sum->bytes += part.bytes;
    return 0;
}

/* Sets `asked` to the sum of up to READ_PARTS parts, and `buffer` if all bytes that were moved are in the first part. */
#ifdef BEFORE_6_1
GLOBAL_FUNCTION int read_current_vectors(u64 address, u64 parts)
#else
GLOBAL_FUNCTION int read_vectors(struct transfer *t, u64 address, u64 parts)
#endif
{
#ifdef BEFORE_6_1
    struct scratch_space *own = scratch();
    struct transfer *t = own ? &own->call : 0;
#endif
    if (!t)
        return 0;
    struct vector_sum sum = {address, 0};
    struct io_vector first;
    t->buffer = 0;
    if (bpf_probe_read_user(&first, sizeof first, (void *)address) == 0 &&
        (parts == 1 || (t->result >= 0 && (u64)t->result <= first.bytes)))
        t->buffer = first.base;
    LOOP(READ_PARTS, parts < READ_PARTS ? parts : READ_PARTS, add_vector, &sum);
    t->asked = sum.bytes;
    return 0;
}

/* struct mmsghdr */
struct message {
    u64 name, name_bytes, parts, count, control, control_bytes;
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
        read_vectors(&own->call, message.parts, message.count);
        if (message.count > READ_PARTS)
            sum->unknown = 1;
        if (message.bytes > own->call.asked)
            message.bytes = own->call.asked;
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
    t->result = t->asked = sum.bytes;
    if (sum.unknown)
        tally(TALLY_UNKNOWN_BYTES);
    return 0;
}
