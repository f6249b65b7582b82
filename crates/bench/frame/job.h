/*
 * One sample: its parameters (wb_job) and its measurements (wb_result). This is the whole
 * boundary between the C loops and their caller; src/ffi.rs mirrors it field by field.
 *
 * One process measures one sample, in this order (frame.c):
 *
 *   prepare   untimed   allocate and touch the buffers, ask the kernel whether it can
 *   open      timed     the descriptors, or streams over them
 *   transfer  timed     the loop; wb_synced() keeps the time of its syncs apart
 *   sync      timed     the one at the end, for WB_SYNC_END
 *   close     timed     what is still in a user-space buffer leaves here; then the descriptors
 *   inspect   untimed   what the kernel says of the result (shared blocks, dirty pages)
 *
 * Single-threaded; nothing here is safe to share between threads. Times are nanoseconds of
 * CLOCK_MONOTONIC, sizes are bytes.
 */
#ifndef WEIR_BENCH_JOB_H
#define WEIR_BENCH_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum wb_workload { WB_COPY, WB_WRITE, WB_READ, WB_TRANSLATE, WB_LOG, WB_WORKLOADS };

enum wb_sync {
    WB_SYNC_NONE,
    WB_SYNC_END,       /* one fsync(2) before close */
    WB_SYNC_FSYNC,     /* fsync(2) every sync_every_bytes */
    WB_SYNC_FDATASYNC, /* fdatasync(2) every sync_every_bytes */
    WB_SYNC_O_DSYNC,   /* open(2) with O_DSYNC */
    WB_SYNC_O_SYNC,    /* open(2) with O_SYNC */
    WB_SYNC_RWF_DSYNC, /* pwritev2(2) with RWF_DSYNC on every write */
    WB_SYNC_RANGE,     /* sync_file_range(2) every sync_every_bytes: waits for writeback, NO durability */
    WB_SYNCS
};

enum wb_mode { WB_MODE_DEFAULT, WB_MODE_NONE, WB_MODE_LINE, WB_MODE_FULL };

/* The six advices of posix_fadvise(2), given on the input after open; the C library numbers them so. */
enum wb_advice { WB_ADVICE_NONE = -1 };

#define WB_BIT(x) (1u << (x))

/* Parameters of one sample. Filled by the caller, read only by the methods. */
struct wb_job {
    const char *method;     /* wb_method.name */
    const char *in_path;    /* NULL for WB_WRITE and WB_LOG */
    const char *out_path;   /* NULL for WB_READ; made by the frame with O_CREAT|O_EXCL|O_NOFOLLOW */
    uint64_t bytes;         /* to move; never more than the input holds */
    uint64_t record_bytes;  /* what one call of the program moves; for WB_LOG the line with its newline */
    uint64_t buffer_bytes;  /* user-space buffer of a method that has one; 0: its default */
    uint64_t sync_every_bytes; /* for the policies that say "every"; at least record_bytes */
    uint32_t workload;      /* enum wb_workload */
    uint32_t sync;          /* enum wb_sync */
    uint32_t mode;          /* enum wb_mode */
    uint32_t vector_records;   /* records a readv/writev call, 1 … IOV_MAX */
    uint32_t queue_depth;      /* io_uring: requests in flight, 1 … 4096 */
    uint32_t registered;       /* io_uring: register the buffers */
    int32_t advice;            /* POSIX_FADV_*, or WB_ADVICE_NONE */
};

enum wb_status { WB_OK, WB_FAILED, WB_CANNOT };

#define WB_CALL_KINDS 10
#define WB_TEXT 200

struct wb_call_count {
    char name[24]; /* the system call's name as strace(1) prints it, "" when unused */
    uint64_t count;
};

/* Measurements of one sample. Written by the frame; methods write through the functions below. */
struct wb_result {
    uint32_t status;         /* enum wb_status */
    int32_t error_number;    /* errno of a failure, 0 where there was none */
    char error_call[24];     /* the call that failed */
    char error_path[WB_TEXT];
    char text[WB_TEXT];      /* WB_CANNOT: why; WB_OK: a remark on the result, or "" */
    uint64_t bytes_moved;
    uint64_t records;        /* passes of the loop: one record each, vector_records with WB_HAS_VECTOR, 1 byte
                                without WB_HAS_RECORD */
    uint64_t open_ns, transfer_ns, sync_ns, close_ns;
    uint64_t elapsed_ns;     /* from before open to after close; the sum of the four above */
    uint64_t cpu_ns;         /* CLOCK_PROCESS_CPUTIME_ID over the same span */
    uint64_t user_us, system_us; /* getrusage(2) over the same span */
    uint64_t voluntary_switches, involuntary_switches, minor_faults, major_faults;
    struct wb_call_count calls[WB_CALL_KINDS]; /* counted by the method, or by the kernel: kernel_counted */
    uint32_t kernel_counted; /* 1: a C library made the calls; read and write are those of /proc/self/io,
                                known if kernel_counts_known, and what else it calls (fstat, lseek, fcntl)
                                is not counted */
    uint32_t kernel_counts_known; /* 1: the two below are valid (CONFIG_TASK_IO_ACCOUNTING) */
    uint64_t kernel_reads, kernel_writes; /* /proc/self/io over the same span: read-like and write-like calls;
                                sendfile and copy_file_range are one of each (but copy_file_range at the
                                input's end), splice and io_uring none */
    uint64_t syncs;          /* explicit sync calls made */
    uint64_t clock_reads;    /* clock_gettime(2) calls whose cost elapsed_ns contains (the first and the last
                                half each) */
    double clock_read_ns;    /* what one costs here, measured in this process */
    double empty_loop_ns;    /* what the frame adds to one pass of the loop, measured in this process */
    uint64_t dirty_bytes, writeback_bytes; /* of the output after close: cachestat(2) */
    uint32_t dirty_known;    /* 0: this kernel cannot say (before 6.5) */
};

/* State in the page cache of the first `bytes` of a file: cachestat(2), or mincore(2) before 6.5. */
struct wb_cache_state {
    uint64_t pages;          /* the file's pages in the range asked about */
    uint64_t cached, dirty, writeback; /* of those; dirty and writeback only if exact */
    uint32_t exact;          /* 1: cachestat(2); 0: mincore(2), which knows only `cached` */
};

/* One method as the caller sees it; the names and texts live as long as the program. */
struct wb_method_facts {
    const char *name, *title, *workload_reason, *sync_reason;
    unsigned workloads, syncs, options;
};

#define WB_HAS_RECORD 1u   /* the record size is free; without it the program moves 1 byte a call */
#define WB_HAS_BUFFER 2u   /* has a user-space buffer of its own (buffer_bytes) */
#define WB_HAS_MODE 4u     /* setvbuf(3) mode */
#define WB_HAS_VECTOR 8u   /* vector_records */
#define WB_HAS_QUEUE 16u   /* queue_depth, registered */

/* Fills *facts for the i-th method, ordered by name; false past the last. */
bool wb_method_at(size_t i, struct wb_method_facts *facts);
/* Runs one sample in this process, and ignores SIGXFSZ from then on. Always fills *result; returns
 * result->status. */
int wb_measure(const struct wb_job *job, struct wb_result *result);
/* Fills *state for the file at fd; 0 or -errno. */
int wb_cache_look(int fd, uint64_t bytes, struct wb_cache_state *state);
/* What O_DIRECT needs for this open file (statx(2) STATX_DIOALIGN): bytes for the address and for the
 * offset and length; 0 or -errno, -EOPNOTSUPP where the file system cannot or does not say. */
int wb_direct_alignment(int fd, uint32_t *memory, uint32_t *offset);
/* Sizes of wb_job, wb_result, wb_method_facts and wb_cache_state, compared by the test in src/ffi.rs. */
#define WB_SIZES 4
void wb_sizes(size_t sizes[WB_SIZES]);
/* The byte at `offset` of the text that WB_WRITE and WB_LOG write: printable ASCII, '\n' as the last
 * byte of every record of `record_bytes`. WB_WRITE uses records of WB_TEXT_LINE. Pure. */
unsigned char wb_text_at(uint64_t offset, uint64_t record_bytes);
#define WB_TEXT_LINE 64
/* The map of WB_TRANSLATE: upper-cases a-z, leaves the rest (tr a-z A-Z). Pure. */
unsigned char wb_translated(unsigned char byte);

#endif
