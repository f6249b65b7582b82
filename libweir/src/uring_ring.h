/* uring_ring.h: an io_uring for one write at a time, independent of streams. Private. The field names are
 * liburing's.
 *
 * The rings are shared with the kernel and MADV_DONTFORK, so a forked child does not inherit them. It does
 * inherit the descriptor, which is close-on-exec. */
#ifndef WEIR_URING_RING_H
#define WEIR_URING_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct io_uring_sqe;
struct io_uring_cqe;

struct weir__ring {
    int fd;      /* -1: none */
    void *rings; /* both rings, in one mapping */
    size_t rings_bytes;
    struct io_uring_sqe *sqes;
    size_t sqes_bytes;
    _Atomic uint32_t *sq_head, *sq_tail; /* submission queue */
    uint32_t sq_mask;
    uint32_t *sq_array;
    _Atomic uint32_t *cq_head, *cq_tail; /* completion queue */
    uint32_t cq_mask;
    struct io_uring_cqe *cqes;
};

struct weir__ring_write {
    int fd;
    const void *from;
    size_t bytes;
    int64_t offset; /* -1: at the descriptor's position, or the file has none */
    bool async;     /* executed by a kernel worker thread, so that the caller does not copy the data */
};

/* Returns -errno if io_uring is missing, denied to this process, or too old. */
int weir__ring_init(struct weir__ring *ring);
void weir__ring_free(struct weir__ring *ring);
/* Returns 0 if the write is in flight; -errno: it is not, and nothing was written. */
int weir__ring_submit(struct weir__ring *ring, const struct weir__ring_write *write);
/* Returns whether the write has completed. *result: a count as from write(2), or -errno. */
bool weir__ring_reap(struct weir__ring *ring, bool wait, int *result);

#endif /* WEIR_URING_RING_H */
