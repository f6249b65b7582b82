/* uring_ring.c: setting up a bare io_uring, starting a write, and learning how it ended. */
#include "uring_ring.h"

#include <linux/io_uring.h>
#include <string.h>
#include <sys/mman.h>

#include "kernel.h"

enum { ENTRIES = 1 };

/* One mapping for both queues (Linux 5.4), an ending is never dropped (5.5), offset -1 (5.6). */
enum { NEEDED = IORING_FEAT_SINGLE_MMAP | IORING_FEAT_NODROP | IORING_FEAT_RW_CUR_POS };

static void *map(int fd, size_t bytes, uint64_t what)
{
    void *got = weir__kernel.mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, (off_t)what);
    if (got != MAP_FAILED)
        madvise(got, bytes, MADV_DONTFORK);
    return got == MAP_FAILED ? NULL : got;
}

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

static int map_all(struct weir__ring *ring, const struct io_uring_params *p)
{
    ring->queues_bytes = larger(p->sq_off.array + p->sq_entries * sizeof(uint32_t),
                                p->cq_off.cqes + p->cq_entries * sizeof(struct io_uring_cqe));
    ring->queues = map(ring->fd, ring->queues_bytes, IORING_OFF_SQ_RING);
    if (!ring->queues)
        return -errno;
    ring->entries_bytes = p->sq_entries * sizeof(struct io_uring_sqe);
    ring->entries = map(ring->fd, ring->entries_bytes, IORING_OFF_SQES);
    return ring->entries ? 0 : -errno;
}

static void point(struct weir__ring *ring, const struct io_uring_params *p)
{
    char *at = ring->queues;
    ring->taken = (void *)(at + p->sq_off.head);
    ring->given = (void *)(at + p->sq_off.tail);
    ring->order = (void *)(at + p->sq_off.array);
    ring->given_mask = *(uint32_t *)(void *)(at + p->sq_off.ring_mask);
    ring->read = (void *)(at + p->cq_off.head);
    ring->ended = (void *)(at + p->cq_off.tail);
    ring->endings = (void *)(at + p->cq_off.cqes);
    ring->ended_mask = *(uint32_t *)(void *)(at + p->cq_off.ring_mask);
}

int weir__ring_make(struct weir__ring *ring)
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
    int result = (p.features & NEEDED) == NEEDED ? map_all(ring, &p) : -ENOSYS;
    if (result < 0) {
        weir__ring_end(ring);
        return result;
    }
    point(ring, &p);
    return 0;
}

void weir__ring_end(struct weir__ring *ring)
{
    if (ring->entries)
        weir__kernel.munmap(ring->entries, ring->entries_bytes);
    if (ring->queues)
        weir__kernel.munmap(ring->queues, ring->queues_bytes);
    if (ring->fd >= 0)
        weir__kernel.close(ring->fd);
    memset(ring, 0, sizeof *ring);
    ring->fd = -1;
}

int weir__ring_start(struct weir__ring *ring, const struct weir__ring_write *write)
{
    uint32_t at = atomic_load_explicit(ring->given, memory_order_relaxed), slot = at & ring->given_mask;
    struct io_uring_sqe *entry = &ring->entries[slot];
    memset(entry, 0, sizeof *entry);
    entry->opcode = IORING_OP_WRITE;
    entry->flags = write->apart ? IOSQE_ASYNC : 0;
    entry->fd = write->fd;
    entry->off = (uint64_t)write->offset;
    entry->addr = (uint64_t)(uintptr_t)write->from;
    entry->len = (uint32_t)write->bytes;
    ring->order[slot] = slot;
    atomic_store_explicit(ring->given, at + 1, memory_order_release);
    int64_t result = WEIR_CALL(weir__kernel.uring_enter(ring->fd, 1, 0, 0));
    if (atomic_load_explicit(ring->taken, memory_order_acquire) == at + 1)
        return 0;
    atomic_store_explicit(ring->given, at, memory_order_release); /* not taken, so it is still ours */
    return result < 0 ? (int)result : -EAGAIN;
}

/* Where the kernel cannot be asked any more - the program closed a descriptor that is not its own, or has a
 * filter for system calls now - the write comes to its end all the same, and the ring's memory tells. */
static void wait_for_one(struct weir__ring *ring)
{
    int64_t result = WEIR_CALL(weir__kernel.uring_enter(ring->fd, 0, 1, IORING_ENTER_GETEVENTS));
    if (result < 0 && result != -EINTR)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
}

bool weir__ring_ended(struct weir__ring *ring, bool wait, int *result)
{
    uint32_t at = atomic_load_explicit(ring->read, memory_order_relaxed);
    while (atomic_load_explicit(ring->ended, memory_order_acquire) == at) {
        if (!wait)
            return false;
        wait_for_one(ring);
    }
    *result = ring->endings[at & ring->ended_mask].res;
    atomic_store_explicit(ring->read, at + 1, memory_order_release);
    return true;
}
