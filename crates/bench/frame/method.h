/*
 * The interface between a measured loop and the frame. A method is one file in ../methods that
 * defines one `const struct wb_method wb_method_NAME` (NAME: the file's); the build finds it there,
 * nothing else is to be edited.
 *
 * A function that can fail returns 0 or a negative value and has then called wb_fail() or
 * wb_cannot(), which record the failed call; the first record stays.
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

/* Defined by each method's file. */
struct wb_method {
    const char *name;        /* as typed on the command line; the file is NAME with '-' as '_' */
    const char *title;       /* one line for --help and the tables */
    unsigned workloads;      /* WB_BIT(WB_COPY) | … */
    const char *workload_reason; /* why it has no other workload; NULL where it has all */
    unsigned syncs;          /* WB_BIT(WB_SYNC_NONE) | … */
    const char *sync_reason; /* why it has no other policy; NULL where it has all */
    unsigned options;        /* WB_HAS_* : the axes that mean something here */
    struct wb_ops {
        int (*prepare)(struct wb_run *); /* may be NULL, as may inspect and release */
        int (*open)(struct wb_run *);    /* NULL: wb_open_files(run, 0, 0) */
        int (*transfer)(struct wb_run *);
        int (*flush)(struct wb_run *);   /* user-space buffer → kernel; called before a sync; NULL: none */
        int (*close)(struct wb_run *);   /* NULL: wb_close_files(run) */
        int (*inspect)(struct wb_run *);
        void (*release)(struct wb_run *); /* free what prepare made; always called */
    } ops;
};

/* The state of one sample, shared by the frame and its method. */
struct wb_run {
    const struct wb_job *job;
    struct wb_result *result;
    const struct wb_method *method;
    int in, out;              /* descriptors, -1 where there is none */
    int open_flags_in, open_flags_out; /* what open(2) gets besides the access mode and the sync flags. WB_LOG
                                 starts with O_APPEND; a prepare that writes at offsets of its own takes it
                                 out, one that maps the output puts O_RDWR in */
    unsigned char *record;    /* record_size bytes, touched, aligned to 4096 */
    uint64_t record_size;     /* one pass; for WB_HAS_QUEUE with an input, queue_depth of them */
    uint64_t pass_bytes;      /* what one pass moves: record_bytes (1 without WB_HAS_RECORD), times
                                 vector_records for WB_HAS_VECTOR */
    uint64_t text_mask;       /* WB_WRITE, WB_LOG: the text for offset o is at record + (o & text_mask) */
    const unsigned char *map; /* WB_TRANSLATE: 256 bytes */
    bool to_end;              /* the job ends where the input ends: a program sees that by one more read */
    uint64_t next_sync;       /* how far `moved` may grow before a sync is due; UINT64_MAX: never */
    uint64_t synced;          /* how far the syncs have come */
    void *own;                /* the method's */
};

/* Called by every loop after each pass, with the total of bytes moved so far; syncs if a sync is due.
 * One load, one compare and no store on the common path: the pass counts itself in a local. */
int wb_sync_now(struct wb_run *run, uint64_t moved); /* cold: flush, sync, keep its time apart */
static inline int wb_passed(struct wb_run *run, uint64_t moved)
{
    return moved < run->next_sync ? 0 : wb_sync_now(run, moved);
}

/* Called once when the loop has ended for whatever reason: keeps the totals; fails where less than the
 * job was moved and nothing said why, which is the input's end met by `call`. 0, or -1 after a failure. */
int wb_moved(struct wb_run *run, uint64_t moved, uint64_t passes, const char *call);

/* Record a failure: `call` on `path` (NULL: none) with errno `error`; returns -1. */
int wb_fail(struct wb_run *run, const char *call, const char *path, int error);
/* Record that this method cannot do this job here, and why, in one clause; returns -1. */
int wb_cannot(struct wb_run *run, const char *format, ...) WB_PRINTF;
/* For a call that may be refused because the kernel or the file system lacks the whole feature: with the
 * feature's name, wb_cannot() where the error says so (ENOSYS, EOPNOTSUPP, EINVAL, EXDEV); any other error,
 * and all of them once the feature has worked (feature NULL), is wb_fail(). Returns -1. */
int wb_refused(struct wb_run *run, const char *feature, const char *call, const char *path, int error);
/* A remark for the result's row; several are joined by "; ". */
void wb_remark(struct wb_run *run, const char *format, ...) WB_PRINTF;
/* Add to the count of a system call, by its name. Not in a hot loop: count there in a local. */
void wb_count(struct wb_run *run, const char *call, uint64_t count);
/* The default open and close; the flags are added to the run's. */
int wb_open_files(struct wb_run *run, int flags_in, int flags_out);
int wb_close_files(struct wb_run *run);
/* Memory for a buffer: aligned to 4096, touched, never more than the machine has free, so that a size
 * beyond it is ENOMEM here and not a kill later. NULL after wb_fail(). Freed with free(3). */
unsigned char *wb_allocate(struct wb_run *run, uint64_t bytes);

#endif
