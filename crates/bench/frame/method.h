/*
 * The interface between a measured loop and the frame. A method is one file in ../methods that
 * defines one `const struct wb_method wb_method_NAME`, NAME being the file's name without .c. The build
 * finds the file; no other file needs an edit.
 *
 * A function that can fail returns 0, or a negative value after a call of wb_fail() or wb_cannot(). These
 * record the failure; only the first one is kept.
 */
#ifndef WEIR_BENCH_METHOD_H
#define WEIR_BENCH_METHOD_H

#include "job.h"

struct wb_run;

#if defined(__GNUC__)
#define WB_PRINTF __attribute__((format(printf, 2, 3)))
#else
#define WB_PRINTF
#endif

#define WB_ALL_WORKLOADS (WB_BIT(WB_WORKLOADS) - 1)
#define WB_ALL_SYNCS (WB_BIT(WB_SYNCS) - 1)

/* Each method's file defines one. */
struct wb_method {
    const char *name;        /* as on the command line; the file's name has '_' for '-' */
    const char *title;       /* one line for --help and the tables */
    unsigned workloads;      /* WB_BIT(WB_COPY) | … */
    const char *workload_reason; /* why the method has no other workload; NULL if it has all */
    unsigned syncs;          /* WB_BIT(WB_SYNC_NONE) | … */
    const char *sync_reason; /* why the method has no other policy; NULL if it has all */
    unsigned options;        /* WB_HAS_*: the axes that the method has */
    struct wb_ops {
        int (*prepare)(struct wb_run *); /* prepare, inspect and release may be NULL */
        int (*open)(struct wb_run *);    /* NULL: wb_open_files(run, 0, 0) */
        int (*transfer)(struct wb_run *);
        int (*flush)(struct wb_run *);   /* writes pending bytes to the kernel before a sync; NULL: no buffer */
        int (*close)(struct wb_run *);   /* NULL: wb_close_files(run) */
        int (*inspect)(struct wb_run *);
        void (*release)(struct wb_run *); /* frees the memory of prepare; always called */
    } ops;
};

/* The state of one sample, shared by the frame and its method. */
struct wb_run {
    const struct wb_job *job;
    struct wb_result *result;
    const struct wb_method *method;
    int in, out;              /* descriptors; -1: not open */
    int open_flags_in, open_flags_out; /* flags of open(2) besides the access mode and the sync flags. WB_LOG
                                 starts with O_APPEND: a method that passes offsets clears it in prepare; one
                                 that maps the output adds O_RDWR */
    unsigned char *record;    /* record_size bytes, touched, aligned to 4096 */
    uint64_t record_size;     /* bytes of one pass; for WB_HAS_QUEUE with an input, of queue_depth passes */
    uint64_t pass_bytes;      /* bytes that one pass moves: record_bytes (1 without WB_HAS_RECORD), times
                                 vector_records for WB_HAS_VECTOR */
    uint64_t text_mask;       /* WB_WRITE, WB_LOG: the text for offset o is at record + (o & text_mask) */
    const unsigned char *map; /* WB_TRANSLATE: 256 bytes */
    bool to_end;              /* the job ends at the input's end, which a program detects with one more read */
    uint64_t next_sync;       /* value of `moved` at which the next sync is due; UINT64_MAX: never */
    uint64_t synced;          /* value of `moved` at the last sync */
    void *method_data;        /* owned by the method */
};

/* Flushes, syncs, and accounts the time of the sync separately. */
int wb_sync_now(struct wb_run *run, uint64_t moved);
/* Called by every loop after each pass, with the total of bytes moved so far; syncs if a sync is due.
 * The common path is one load and one compare, without a store: the loop counts passes in a local. */
static inline int wb_passed(struct wb_run *run, uint64_t moved)
{
    return moved < run->next_sync ? 0 : wb_sync_now(run, moved);
}

/* Called once at the end of the loop, also after a failure: records the totals. If fewer bytes than the job's
 * were moved without a recorded failure, the input ended early, and `call` fails with ENODATA. Returns 0, or -1
 * after a failure. */
int wb_moved(struct wb_run *run, uint64_t moved, uint64_t passes, const char *call);

/* Records a failure: `call` on `path` (NULL: none) with errno `error`; returns -1. */
int wb_fail(struct wb_run *run, const char *call, const char *path, int error);
/* Records that this method cannot do this job here; the text is the reason, one clause. Returns -1. */
int wb_cannot(struct wb_run *run, const char *format, ...) WB_PRINTF;
/* Records the failure of a call that the kernel or the file system may not support. With the feature's name
 * and an error that means "not supported" (ENOSYS, EOPNOTSUPP, EINVAL, EXDEV) it is wb_cannot(); with any
 * other error, or with feature NULL because the feature has worked before, it is wb_fail(). Returns -1. */
int wb_refused(struct wb_run *run, const char *feature, const char *call, const char *path, int error);
/* Adds a remark to the result's row; several are joined by "; ". */
void wb_remark(struct wb_run *run, const char *format, ...) WB_PRINTF;
/* Adds to the count of a system call, by its name. Too slow for a hot loop: count there in a local. */
void wb_count(struct wb_run *run, const char *call, uint64_t count);
/* The default open and close; the flags are added to the run's. */
int wb_open_files(struct wb_run *run, int flags_in, int flags_out);
int wb_close_files(struct wb_run *run);
/* Allocates a buffer, aligned to 4096 and touched. A size beyond the available memory of the machine or of its cgroups
 * (version 2) fails with ENOMEM here, so the OOM killer does not end the process later. Returns NULL after wb_fail().
 * Free it with free(3). */
unsigned char *wb_allocate(struct wb_run *run, uint64_t bytes);

#endif
