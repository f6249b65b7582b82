/* fake_ring.c: io_uring_setup(2) and io_uring_enter(2) in this process, with injected results of writes. */
#include "fake_ring.h"

#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../../src/kernel.h"

struct queues {
    _Atomic uint32_t sq_head, sq_tail, cq_head, cq_tail;
    uint32_t sq_mask, cq_mask;
    uint32_t sq_array[1];
    struct io_uring_cqe cqes[2];
};

struct fake_ring fake_ring;
static struct weir__kernel real;
static struct queues *queues;
static struct io_uring_sqe *entries, in_flight_sqe;
static int ring_fd = -1;

/* Ends the test if the library uses the ring in a way that this fake does not support. */
static void require(bool ok, const char *requirement)
{
    if (ok)
        return;
    printf("fake_ring: not true: %s\n", requirement);
    fflush(stdout);
    abort();
}

static void *memory_for(size_t bytes)
{
    void *got = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    require(got != MAP_FAILED, "there is memory");
    return got;
}

static int fake_setup(unsigned count, void *parameters)
{
    struct io_uring_params *p = parameters;
    if (fake_ring.setup_errno) {
        errno = fake_ring.setup_errno;
        return -1;
    }
    require(count == 1 && ring_fd < 0, "one ring with one entry");
    queues = NULL;
    entries = NULL;
    p->sq_entries = 1;
    p->cq_entries = 2;
    p->features = IORING_FEAT_SINGLE_MMAP | IORING_FEAT_NODROP | IORING_FEAT_RW_CUR_POS;
    p->sq_off.head = offsetof(struct queues, sq_head);
    p->sq_off.tail = offsetof(struct queues, sq_tail);
    p->sq_off.ring_mask = offsetof(struct queues, sq_mask);
    p->sq_off.array = offsetof(struct queues, sq_array);
    p->cq_off.head = offsetof(struct queues, cq_head);
    p->cq_off.tail = offsetof(struct queues, cq_tail);
    p->cq_off.ring_mask = offsetof(struct queues, cq_mask);
    p->cq_off.cqes = offsetof(struct queues, cqes);
    ring_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    fake_ring.open++;
    return ring_fd;
}

static void *fake_mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    if (fd < 0 || fd != ring_fd)
        return real.mmap(address, bytes, protection, flags, fd, offset);
    if (offset == IORING_OFF_SQES)
        return entries = memory_for(bytes);
    require(bytes >= sizeof *queues, "all of the queues is mapped");
    queues = memory_for(bytes);
    queues->cq_mask = 1;
    return queues;
}

static int fake_close(int fd)
{
    if (fd >= 0 && fd == ring_fd) {
        require(!fake_ring.in_flight, "no write is in flight when the ring is closed");
        ring_fd = -1;
        fake_ring.open--;
    }
    return real.close(fd);
}

static bool is_hit(void)
{
    return fake_ring.at && fake_ring.started >= fake_ring.at && fake_ring.hits < fake_ring.times;
}

static int64_t real_write(size_t bytes)
{
    const void *from = (const void *)(uintptr_t)in_flight_sqe.addr;
    int64_t offset = (int64_t)in_flight_sqe.off;
    int64_t written = offset < 0 ? real.write(in_flight_sqe.fd, from, bytes)
                                 : real.pwrite(in_flight_sqe.fd, from, bytes, (off_t)offset);
    return written < 0 ? -errno : written;
}

void fake_ring_complete(void)
{
    size_t bytes = in_flight_sqe.len;
    int64_t result = 0;
    if (!fake_ring.in_flight)
        return;
    bool hit = is_hit() && !fake_ring.refused;
    fake_ring.hits += hit;
    if (hit && fake_ring.result > 0)
        bytes = (size_t)fake_ring.result < bytes / 2 ? (size_t)fake_ring.result : (bytes + 1) / 2;
    result = hit && fake_ring.result <= 0 ? fake_ring.result : real_write(bytes);
    uint32_t at = atomic_load(&queues->cq_tail);
    require(at - atomic_load(&queues->cq_head) == 0, "the last completion was consumed");
    queues->cqes[at & 1] = (struct io_uring_cqe){.user_data = in_flight_sqe.user_data, .res = (int)result};
    atomic_store(&queues->cq_tail, at + 1);
    fake_ring.in_flight = false;
}

static int fake_enter(int fd, unsigned submit, unsigned complete, unsigned flags)
{
    require(fd == ring_fd && queues && entries, "the ring is set up");
    if (submit) {
        require(atomic_load(&queues->sq_tail) - atomic_load(&queues->sq_head) == 1, "one write is submitted");
        require(!fake_ring.in_flight, "one write is in flight at a time");
        fake_ring.started++;
        if (fake_ring.refused && is_hit()) {
            fake_ring.hits++;
            errno = -fake_ring.result;
            return -1;
        }
        in_flight_sqe = entries[queues->sq_array[0]];
        require(in_flight_sqe.opcode == IORING_OP_WRITE && in_flight_sqe.len > 0, "the operation is a write");
        atomic_fetch_add(&queues->sq_head, 1);
        fake_ring.in_flight = true;
        if (fake_ring.at_once)
            fake_ring_complete();
        return 1;
    }
    require(complete == 1 && flags == IORING_ENTER_GETEVENTS, "a call without submission waits for one completion");
    require(fake_ring.in_flight, "a write is in flight");
    fake_ring.waits++;
    if (fake_ring.waits % 3 == 0) { /* a signal interrupts the wait */
        errno = EINTR;
        return -1;
    }
    fake_ring_complete();
    return 0;
}

void fake_ring_reset(void) { fake_ring = (struct fake_ring){.open = fake_ring.open}; }

void fake_ring_install(void)
{
    real = weir__kernel;
    weir__kernel.uring_setup = fake_setup;
    weir__kernel.uring_enter = fake_enter;
    weir__kernel.mmap = fake_mmap;
    weir__kernel.close = fake_close;
}

void fake_ring_remove(void) { weir__kernel = real; }
