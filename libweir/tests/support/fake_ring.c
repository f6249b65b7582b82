/* fake_ring.c: io_uring_setup(2) and io_uring_enter(2) in this process, with writes that end as planned. */
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
    _Atomic uint32_t taken, given, read, ended;
    uint32_t given_mask, ended_mask;
    uint32_t order[1];
    struct io_uring_cqe endings[2];
};

struct fake_ring fake_ring;
static struct weir__kernel real;
static struct queues *queues;
static struct io_uring_sqe *entries, flight;
static int ring_fd = -1;

static void must(bool well, const char *what)
{
    if (well)
        return;
    printf("fake_ring: %s\n", what);
    fflush(stdout);
    abort();
}

static void *memory_for(size_t bytes)
{
    void *got = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(got != MAP_FAILED, "no memory");
    return got;
}

static int fake_setup(unsigned count, void *parameters)
{
    struct io_uring_params *p = parameters;
    if (fake_ring.no_ring) {
        errno = fake_ring.no_ring;
        return -1;
    }
    must(count == 1 && ring_fd < 0, "one ring with one entry");
    queues = NULL;
    entries = NULL;
    p->sq_entries = 1;
    p->cq_entries = 2;
    p->features = IORING_FEAT_SINGLE_MMAP | IORING_FEAT_NODROP | IORING_FEAT_RW_CUR_POS;
    p->sq_off.head = offsetof(struct queues, taken);
    p->sq_off.tail = offsetof(struct queues, given);
    p->sq_off.ring_mask = offsetof(struct queues, given_mask);
    p->sq_off.array = offsetof(struct queues, order);
    p->cq_off.head = offsetof(struct queues, read);
    p->cq_off.tail = offsetof(struct queues, ended);
    p->cq_off.ring_mask = offsetof(struct queues, ended_mask);
    p->cq_off.cqes = offsetof(struct queues, endings);
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
    must(bytes >= sizeof *queues, "all of the queues");
    queues = memory_for(bytes);
    queues->ended_mask = 1;
    return queues;
}

static int fake_close(int fd)
{
    if (fd >= 0 && fd == ring_fd) {
        must(!fake_ring.in_flight, "the ring ends with a write in flight");
        ring_fd = -1;
        fake_ring.open--;
    }
    return real.close(fd);
}

static bool is_spoilt(void)
{
    return fake_ring.at && fake_ring.started >= fake_ring.at && fake_ring.hits < fake_ring.times;
}

static int64_t really_write(size_t bytes)
{
    const void *from = (const void *)(uintptr_t)flight.addr;
    int64_t taken = (int64_t)flight.off < 0 ? real.write(flight.fd, from, bytes)
                                            : real.pwrite(flight.fd, from, bytes, (off_t)flight.off);
    return taken < 0 ? -errno : taken;
}

void fake_ring_end_now(void)
{
    size_t bytes = flight.len;
    int64_t result = 0;
    if (!fake_ring.in_flight)
        return;
    bool spoilt = is_spoilt() && !fake_ring.refused;
    fake_ring.hits += spoilt;
    if (spoilt && fake_ring.ends_with > 0)
        bytes = (size_t)fake_ring.ends_with < bytes / 2 ? (size_t)fake_ring.ends_with : (bytes + 1) / 2;
    result = spoilt && fake_ring.ends_with <= 0 ? fake_ring.ends_with : really_write(bytes);
    uint32_t at = atomic_load(&queues->ended);
    must(at - atomic_load(&queues->read) == 0, "an ending was not taken");
    queues->endings[at & 1] = (struct io_uring_cqe){.user_data = flight.user_data, .res = (int)result};
    atomic_store(&queues->ended, at + 1);
    fake_ring.in_flight = false;
}

static int fake_enter(int fd, unsigned submit, unsigned complete, unsigned flags)
{
    must(fd == ring_fd && queues && entries, "no such ring");
    if (submit) {
        must(atomic_load(&queues->given) - atomic_load(&queues->taken) == 1, "one write is given");
        must(!fake_ring.in_flight, "one write is in flight at a time");
        fake_ring.started++;
        if (fake_ring.refused && is_spoilt()) {
            fake_ring.hits++;
            errno = -fake_ring.ends_with;
            return -1;
        }
        flight = entries[queues->order[0]];
        must(flight.opcode == IORING_OP_WRITE && flight.len > 0, "it is a write");
        atomic_fetch_add(&queues->taken, 1);
        fake_ring.in_flight = true;
        if (fake_ring.at_once)
            fake_ring_end_now();
        return 1;
    }
    must(complete == 1 && flags == IORING_ENTER_GETEVENTS, "then it waits for one");
    must(fake_ring.in_flight, "there is one to wait for");
    fake_ring.waits++;
    if (fake_ring.waits % 3 == 0) { /* a signal came in between */
        errno = EINTR;
        return -1;
    }
    fake_ring_end_now();
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
