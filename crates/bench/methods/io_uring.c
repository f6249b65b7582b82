/*
 * io_uring(7) through liburing: up to queue_depth records in flight. Each has its offset, so they may complete
 * in any order. A record is read into its slot and written from there; after a short completion the rest is
 * queued again.
 */
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <stdlib.h>
#include <string.h>

#include "../frame/raw.h"

struct slot {
    unsigned char *buffer;
    uint64_t offset; /* of the record in the file */
    uint32_t length, done;
    bool writing;
};

struct ring {
    struct io_uring uring;
    struct slot *slots;
    uint32_t *idle;       /* stack of the slots without a record */
    uint32_t idle_count, depth;
    bool ready, fixed, completed_any; /* ring exists; buffers are registered; a request has succeeded */
    uint64_t issued, moved, passes, enters;
    uint64_t error_offset; /* of the first failed record in file order, which is the one reported */
    int error;
    bool error_writing;
    const char *error_call;
};

static int prepare(struct wb_run *run)
{
    const uint32_t depth = run->job->queue_depth;
    struct ring *ring = calloc(1, sizeof *ring);
    if (!ring)
        return wb_fail(run, "malloc", NULL, ENOMEM);
    run->method_data = ring;
    run->open_flags_out &= ~O_APPEND; /* O_APPEND ignores offsets */
    ring->slots = calloc(depth, sizeof ring->slots[0]);
    ring->idle = calloc(depth, sizeof ring->idle[0]);
    if (!ring->slots || !ring->idle)
        return wb_fail(run, "malloc", NULL, ENOMEM);
    ring->depth = ring->idle_count = depth;
    for (uint32_t i = 0; i < depth; i++)
        ring->idle[i] = depth - 1 - i;
    return 0;
}

static void release(struct wb_run *run)
{
    struct ring *ring = run->method_data;
    if (!ring)
        return;
    free(ring->slots);
    free(ring->idle);
    free(ring);
}

/* Registers the record area as one buffer: the slots are parts of it, or share its text. */
static void register_buffers(struct wb_run *run, struct ring *ring)
{
    const struct iovec area = {run->record, (size_t)run->record_size};
    const int rc = io_uring_register_buffers(&ring->uring, &area, 1);
    wb_count(run, "io_uring_register", 1);
    ring->fixed = rc == 0;
    if (rc != 0)
        wb_remark(run, "the buffers are not registered: %s%s", strerror(-rc),
                  rc == -ENOMEM ? " (RLIMIT_MEMLOCK)" : "");
}

static int open_ring(struct wb_run *run)
{
    struct ring *ring = run->method_data;
    if (wb_open_files(run, 0, 0) != 0)
        return -1;
    const int rc = io_uring_queue_init(ring->depth, &ring->uring, 0);
    wb_count(run, "io_uring_setup", 1);
    if (rc == -ENOSYS || rc == -EPERM || rc == -EACCES)
        return wb_cannot(run, "this kernel has no io_uring, or forbids it: %s", strerror(-rc));
    if (rc == -ENOMEM)
        return wb_cannot(run, "the kernel has no memory for a ring of this depth (RLIMIT_MEMLOCK)");
    if (rc != 0)
        return wb_fail(run, "io_uring_setup", NULL, -rc);
    ring->ready = true;
    if (run->job->registered)
        register_buffers(run, ring);
    return 0;
}

static int close_ring(struct wb_run *run)
{
    struct ring *ring = run->method_data;
    if (ring->ready) {
        io_uring_queue_exit(&ring->uring);
        wb_count(run, "close", 1);
    }
    ring->ready = false;
    return wb_close_files(run);
}

/* Queues the rest of the slot's read or write. The ring has one entry per slot, so there is always one free. */
static void queue(struct wb_run *run, struct ring *ring, uint32_t index)
{
    struct slot *slot = &ring->slots[index];
    struct io_uring_sqe *sqe = io_uring_get_sqe(&ring->uring);
    unsigned char *address = slot->buffer + slot->done;
    const uint32_t bytes = slot->length - slot->done;
    const uint64_t offset = slot->offset + slot->done;
    if (slot->writing && ring->fixed)
        io_uring_prep_write_fixed(sqe, run->out, address, bytes, offset, 0);
    else if (slot->writing)
        io_uring_prep_write(sqe, run->out, address, bytes, offset);
    else if (ring->fixed)
        io_uring_prep_read_fixed(sqe, run->in, address, bytes, offset, 0);
    else
        io_uring_prep_read(sqe, run->in, address, bytes, offset);
    if (slot->writing && run->job->sync == WB_SYNC_RWF_DSYNC)
        sqe->rw_flags = RWF_DSYNC;
    io_uring_sqe_set_data64(sqe, index);
}

/* Queues records up to the one at which the next sync is due, because the sync must include all of them. */
static void issue(struct wb_run *run, struct ring *ring)
{
    const uint64_t bytes = run->job->bytes, record = run->pass_bytes;
    const bool text = run->in < 0;
    while (ring->idle_count > 0 && ring->issued < bytes && ring->issued < run->next_sync) {
        const uint32_t index = ring->idle[--ring->idle_count];
        struct slot *slot = &ring->slots[index];
        slot->buffer = run->record + (text ? ring->issued & run->text_mask : index * record);
        slot->offset = ring->issued;
        slot->length = (uint32_t)wb_pass_length(bytes - ring->issued, record);
        slot->done = 0;
        slot->writing = text;
        ring->issued += slot->length;
        queue(run, ring, index);
    }
}

static void retire(struct ring *ring, uint32_t index)
{
    ring->idle[ring->idle_count++] = index;
}

static void record_error(struct ring *ring, uint32_t index, int error)
{
    const struct slot *slot = &ring->slots[index];
    if (!ring->error || slot->offset < ring->error_offset) {
        ring->error = error;
        ring->error_offset = slot->offset;
        ring->error_writing = slot->writing;
        ring->error_call = slot->writing ? "io_uring write" : "io_uring read";
    }
    retire(ring, index);
}

/* Ends a read or write that is complete: queues the write after a read, or retires the slot and counts it. */
static int finish_stage(struct wb_run *run, struct ring *ring, uint32_t index)
{
    struct slot *slot = &ring->slots[index];
    if (slot->writing || run->out < 0) {
        ring->moved += slot->length;
        ring->passes++;
        retire(ring, index);
        return wb_passed(run, ring->moved);
    }
    if (run->job->workload == WB_TRANSLATE)
        for (uint32_t i = 0; i < slot->length; i++)
            slot->buffer[i] = run->map[slot->buffer[i]];
    slot->writing = true;
    slot->done = 0;
    queue(run, ring, index);
    return 0;
}

static int complete(struct wb_run *run, struct ring *ring, uint32_t index, int result)
{
    struct slot *slot = &ring->slots[index];
    if (result > 0) {
        slot->done += (uint32_t)result;
        ring->completed_any = true;
        if (slot->done == slot->length)
            return ring->error ? (retire(ring, index), 0) : finish_stage(run, ring, index);
    } else if (result == 0) {
        record_error(ring, index, slot->writing ? EIO : ENODATA);
        return 0;
    } else if (result != -EINTR && result != -EAGAIN) {
        record_error(ring, index, -result);
        return 0;
    }
    queue(run, ring, index);
    return 0;
}

/* Submits the queued requests, waits for at least one completion and processes all available ones. */
static int submit_and_reap(struct wb_run *run, struct ring *ring)
{
    struct io_uring_cqe *cqe;
    unsigned head, seen = 0;
    int rc;
    do {
        rc = io_uring_submit_and_wait(&ring->uring, 1);
        ring->enters++;
    } while (rc == -EINTR);
    if (rc < 0)
        return wb_fail(run, "io_uring_enter", NULL, -rc);
    rc = 0;
    io_uring_for_each_cqe(&ring->uring, head, cqe) {
        rc |= complete(run, ring, (uint32_t)io_uring_cqe_get_data64(cqe), cqe->res);
        seen++;
    }
    io_uring_cq_advance(&ring->uring, seen);
    return rc;
}

static int transfer(struct wb_run *run)
{
    struct ring *ring = run->method_data;
    const struct wb_job *job = run->job;
    int rc = 0;
    while (rc == 0 && (ring->error ? ring->idle_count < ring->depth : ring->moved < job->bytes)) {
        if (!ring->error)
            issue(run, ring);
        rc = submit_and_reap(run, ring);
    }
    wb_count(run, "io_uring_enter", ring->enters);
    if (ring->error)
        wb_refused(run, ring->completed_any ? NULL : ring->error_call, ring->error_call,
                   ring->error_writing ? job->out_path : job->in_path, ring->error);
    return wb_moved(run, ring->moved, ring->passes, "io_uring read");
}

const struct wb_method wb_method_io_uring = {
    .name = "io_uring",
    .title = "io_uring(7), several records in flight",
    .workloads = WB_ALL_WORKLOADS,
    .syncs = WB_ALL_SYNCS,
    .options = WB_HAS_RECORD | WB_HAS_QUEUE,
    .ops = {.prepare = prepare, .open = open_ring, .transfer = transfer, .close = close_ring,
            .release = release},
};
