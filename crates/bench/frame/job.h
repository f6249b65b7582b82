/*
 * One sample: its parameters (wb_job) and its measurements (wb_result). This file is the complete
 * interface between the C loops and their caller; src/ffi.rs mirrors it field by field.
 *
 * One process measures one sample, in this order (frame.c):
 *
 *   prepare   untimed   allocate and touch the buffers, check that the kernel supports the method
 *   open      timed     open the descriptors, or streams over them
 *   transfer  timed     run the loop; wb_sync_now() accounts the time of its syncs separately
 *   sync      timed     sync once, for WB_SYNC_END
 *   close     timed     write the pending bytes of user-space buffers, close the descriptors
 *   inspect   untimed   read the state of the output from the kernel (shared blocks, dirty pages)
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

/* Advice of posix_fadvise(2) for the input, given after open: POSIX_FADV_* of the C library, or none. */
enum wb_advice { WB_ADVICE_NONE = -1 };

#define WB_BIT(x) (1u << (x))

/* Parameters of one sample. The caller fills them; methods only read them. */
struct wb_job {
    const char *method;     /* wb_method.name */
    const char *in_path;    /* NULL for WB_WRITE and WB_LOG */
    const char *out_path;   /* NULL for WB_READ; created by the frame with O_CREAT|O_EXCL|O_NOFOLLOW */
    uint64_t bytes;         /* to move; at most the size of the input */
    uint64_t record_bytes;  /* bytes per call of the program; for WB_LOG the line with its newline */
    uint64_t buffer_bytes;  /* size of the user-space buffer, with WB_HAS_BUFFER; 0: the default */
    uint64_t sync_every_bytes; /* interval of the policies with "every" above; at least record_bytes */
    uint32_t workload;      /* enum wb_workload */
    uint32_t sync;          /* enum wb_sync */
    uint32_t mode;          /* enum wb_mode */
    uint32_t vector_records;   /* records per readv/writev call, 1 … IOV_MAX */
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

/* Measurements of one sample. The frame writes them; methods use the functions of method.h. */
struct wb_result {
    uint32_t status;         /* enum wb_status */
    int32_t error_number;    /* errno of a failure, 0 without one */
    char error_call[24];     /* the call that failed */
    char error_path[WB_TEXT];
    char text[WB_TEXT];      /* WB_CANNOT: the reason; WB_OK: a remark on the result, or "" */
    uint64_t bytes_moved;
    uint64_t records;        /* passes of the loop: one record each, vector_records with WB_HAS_VECTOR, 1 byte
                                without WB_HAS_RECORD */
    uint64_t open_ns, transfer_ns, sync_ns, close_ns;
    uint64_t elapsed_ns;     /* from before open to after close: the sum of the four fields above */
    uint64_t cpu_ns;         /* CLOCK_PROCESS_CPUTIME_ID over the same span */
    uint64_t user_us, system_us; /* getrusage(2) over the same span */
    uint64_t voluntary_switches, involuntary_switches, minor_faults, major_faults;
    struct wb_call_count calls[WB_CALL_KINDS]; /* counted by the method, or by the kernel: kernel_counted */
    uint32_t kernel_counted; /* 1: a library made the calls; read and write come from /proc/self/io, valid if
                                kernel_counts_known; its other calls (fstat, lseek, fcntl) are not counted */
    uint32_t kernel_counts_known; /* 1: the next two fields are valid (CONFIG_TASK_IO_ACCOUNTING) */
    uint64_t kernel_reads, kernel_writes; /* syscr and syscw of /proc/self/io over the same span; the kernel
                                counts sendfile and copy_file_range as one of each (except copy_file_range at
                                the input's end), splice and io_uring as none */
    uint64_t syncs;          /* explicit sync calls made */
    uint64_t clock_reads;    /* clock_gettime(2) calls inside elapsed_ns; the first and the last count as half
                                a call each */
    double clock_read_ns;    /* cost of one clock_gettime(2), measured in this process */
    double empty_loop_ns;    /* cost that the frame adds to one pass of the loop, measured in this process */
    uint64_t dirty_bytes, writeback_bytes; /* of the output after close: cachestat(2) */
    uint32_t dirty_known;    /* 0: the kernel has no cachestat(2) (before 6.5) */
};

/* State in the page cache of the first `bytes` of a file: cachestat(2), or mincore(2) before 6.5. */
struct wb_cache_state {
    uint64_t pages;          /* pages of the file in the range */
    uint64_t cached, dirty, writeback; /* pages in that state; dirty and writeback only if exact */
    uint32_t exact;          /* 1: from cachestat(2); 0: from mincore(2), which reports only `cached` */
};

/* Name and capabilities of a method. The strings are static. */
struct wb_method_info {
    const char *name, *title, *workload_reason, *sync_reason;
    unsigned workloads, syncs, options;
};

#define WB_HAS_RECORD 1u   /* the record size is free; without it the program moves 1 byte per call */
#define WB_HAS_BUFFER 2u   /* has a user-space buffer of its own (buffer_bytes) */
#define WB_HAS_MODE 4u     /* setvbuf(3) mode */
#define WB_HAS_VECTOR 8u   /* vector_records */
#define WB_HAS_QUEUE 16u   /* queue_depth, registered */

/* Fills *info for the i-th method, ordered by name; returns false past the last. */
bool wb_method_at(size_t i, struct wb_method_info *info);
/* Runs one sample in this process, and ignores SIGXFSZ from then on. Always fills *result; returns
 * result->status. */
int wb_measure(const struct wb_job *job, struct wb_result *result);
/* Fills *state for the first `bytes` bytes of the file at fd; returns 0 or -errno. */
int wb_read_cache_state(int fd, uint64_t bytes, struct wb_cache_state *state);
/* Reads the alignment in bytes that O_DIRECT requires for this open file (statx(2) STATX_DIOALIGN): *memory of
 * the address, *offset of the offset and length. Returns 0 or -errno; -EOPNOTSUPP if the file system has no
 * O_DIRECT or does not report the alignment. */
int wb_direct_alignment(int fd, uint32_t *memory, uint32_t *offset);
/* Sizes of wb_job, wb_result, wb_method_info and wb_cache_state, compared by the test in src/ffi.rs. */
#define WB_SIZES 4
void wb_sizes(size_t sizes[WB_SIZES]);
/* Returns the byte at `offset` of the text that WB_WRITE and WB_LOG write: printable ASCII, '\n' as the last
 * byte of every record of `record_bytes`. WB_WRITE uses records of WB_TEXT_LINE. Pure. */
unsigned char wb_text_at(uint64_t offset, uint64_t record_bytes);
#define WB_TEXT_LINE 64
/* Returns the byte as WB_TRANSLATE writes it: a-z in upper case, others unchanged (tr a-z A-Z). Pure. */
unsigned char wb_translated(unsigned char byte);

#endif
