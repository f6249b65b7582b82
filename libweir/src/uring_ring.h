/* uring_ring.h: a bare io_uring for one write at a time. Private; knows nothing of streams.
 *
 * The ring's memory is shared with the kernel, so a forked child must not have it: it is MADV_DONTFORK. The
 * descriptor, as every descriptor, the child does inherit; it is close-on-exec. */
#ifndef WEIR_URING_RING_H
#define WEIR_URING_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct io_uring_sqe;
struct io_uring_cqe;

struct weir__ring {
    int fd; /* -1: there is none */
    void *rings; /* both, one mapping */
    size_t rings_bytes;
    struct io_uring_sqe *sqes;
    size_t sqes_bytes;
    _Atomic uint32_t *sq_head, *sq_tail; /* head and tail of what goes to the kernel */
    uint32_t sq_mask;
    uint32_t *sq_array;                  /* indexes of entries */
    _Atomic uint32_t *cq_head, *cq_tail; /* head and tail of what comes back */
    uint32_t cq_mask;
    struct io_uring_cqe *cqes;
};

struct weir__ring_write {
    int fd;
    const void *from;
    size_t bytes;
    int64_t offset; /* -1: where the descriptor is, which moves on; or it has no position */
    bool async;     /* by a thread of the kernel's, so that the caller does not copy either */
};

/* 0, or -errno: the kernel has no io_uring, or not for this process, or an old one. */
int weir__ring_init(struct weir__ring *ring);
void weir__ring_free(struct weir__ring *ring);
/* 0: it is in flight. -errno: it is not, and nothing was written. */
int weir__ring_submit(struct weir__ring *ring, const struct weir__ring_write *write);
/* Has it ended? With *result: a count as write(2) returns, or -errno. */
bool weir__ring_reap(struct weir__ring *ring, bool wait, int *result);

#endif /* WEIR_URING_RING_H */
