/* uring_ring.c: sets up an io_uring, submits a write and reaps its completion. */
#include "uring_ring.h"

#include <linux/io_uring.h>
#include <string.h>
#include <sys/mman.h>

#include "kernel.h"

enum { ENTRIES = 1 };

/* One mapping for both rings (Linux 5.4), no dropped completions (5.5), offset -1 (5.6). */
enum { REQUIRED_FEATURES = IORING_FEAT_SINGLE_MMAP | IORING_FEAT_NODROP | IORING_FEAT_RW_CUR_POS };

static void *map_ring(int fd, size_t bytes, uint64_t offset)
{
    void *memory =
        weir__kernel.mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, (off_t)offset);
    if (memory != MAP_FAILED)
        madvise(memory, bytes, MADV_DONTFORK);
    return memory == MAP_FAILED ? NULL : memory;
}

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

static int map_all(struct weir__ring *ring, const struct io_uring_params *p)
{
    ring->rings_bytes = larger(p->sq_off.array + p->sq_entries * sizeof(uint32_t),
                               p->cq_off.cqes + p->cq_entries * sizeof(struct io_uring_cqe));
    ring->rings = map_ring(ring->fd, ring->rings_bytes, IORING_OFF_SQ_RING);
    if (!ring->rings)
        return -errno;
    ring->sqes_bytes = p->sq_entries * sizeof(struct io_uring_sqe);
    ring->sqes = map_ring(ring->fd, ring->sqes_bytes, IORING_OFF_SQES);
    return ring->sqes ? 0 : -errno;
}

static void set_pointers(struct weir__ring *ring, const struct io_uring_params *p)
{
    char *at = ring->rings;
    ring->sq_head = (void *)(at + p->sq_off.head);
    ring->sq_tail = (void *)(at + p->sq_off.tail);
    ring->sq_array = (void *)(at + p->sq_off.array);
    ring->sq_mask = *(uint32_t *)(void *)(at + p->sq_off.ring_mask);
    ring->cq_head = (void *)(at + p->cq_off.head);
    ring->cq_tail = (void *)(at + p->cq_off.tail);
    ring->cqes = (void *)(at + p->cq_off.cqes);
    ring->cq_mask = *(uint32_t *)(void *)(at + p->cq_off.ring_mask);
}

int weir__ring_init(struct weir__ring *ring)
{
    struct io_uring_params p;
    memset(&p, 0, sizeof p);
    memset(ring, 0, sizeof *ring);
    ring->fd = (int)WEIR_CALL(weir__kernel.uring_setup(ENTRIES, &p));
    if (ring->fd < 0) {
        int result = ring->fd;
        ring->fd = -1;
        return result;
    }
    int result = (p.features & REQUIRED_FEATURES) == REQUIRED_FEATURES ? map_all(ring, &p) : -ENOSYS;
    if (result < 0) {
        weir__ring_free(ring);
        return result;
    }
    set_pointers(ring, &p);
    return 0;
}

void weir__ring_free(struct weir__ring *ring)
{
    if (ring->sqes)
        weir__kernel.munmap(ring->sqes, ring->sqes_bytes);
    if (ring->rings)
        weir__kernel.munmap(ring->rings, ring->rings_bytes);
    if (ring->fd >= 0)
        weir__kernel.close(ring->fd);
    memset(ring, 0, sizeof *ring);
    ring->fd = -1;
}

int weir__ring_submit(struct weir__ring *ring, const struct weir__ring_write *write)
{
    uint32_t at = atomic_load_explicit(ring->sq_tail, memory_order_relaxed), slot = at & ring->sq_mask;
    struct io_uring_sqe *sqe = &ring->sqes[slot];
    memset(sqe, 0, sizeof *sqe);
    sqe->opcode = IORING_OP_WRITE;
    sqe->flags = write->async ? IOSQE_ASYNC : 0;
    sqe->fd = write->fd;
    sqe->off = (uint64_t)write->offset;
    sqe->addr = (uint64_t)(uintptr_t)write->from;
    sqe->len = (uint32_t)write->bytes;
    ring->sq_array[slot] = slot;
    atomic_store_explicit(ring->sq_tail, at + 1, memory_order_release);
    int64_t result = WEIR_CALL(weir__kernel.uring_enter(ring->fd, 1, 0, 0));
    if (atomic_load_explicit(ring->sq_head, memory_order_acquire) == at + 1)
        return 0;
    atomic_store_explicit(ring->sq_tail, at, memory_order_release); /* the kernel did not consume it */
    return result < 0 ? (int)result : -EAGAIN;
}

/* Waits for a completion. If the system call fails (the program closed the descriptor, or a seccomp filter
 * denies it), polls the ring's memory: the write completes nevertheless. */
static void wait_for_completion(struct weir__ring *ring)
{
    int64_t result = WEIR_CALL(weir__kernel.uring_enter(ring->fd, 0, 1, IORING_ENTER_GETEVENTS));
    if (result < 0 && result != -EINTR)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
}

bool weir__ring_reap(struct weir__ring *ring, bool wait, int *result)
{
    uint32_t at = atomic_load_explicit(ring->cq_head, memory_order_relaxed);
    while (atomic_load_explicit(ring->cq_tail, memory_order_acquire) == at) {
        if (!wait)
            return false;
        wait_for_completion(ring);
    }
    *result = ring->cqes[at & ring->cq_mask].res;
    atomic_store_explicit(ring->cq_head, at + 1, memory_order_release);
    return true;
}
