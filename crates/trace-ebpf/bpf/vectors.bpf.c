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

/* Sets `asked` to the sum of up to 64 parts, and `buffer` if all bytes that were moved are in the first part. */
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
    LOOP(64, parts < 64 ? parts : 64, add_vector, &sum);
    t->asked = sum.bytes;
    return 0;
}
