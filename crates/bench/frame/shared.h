/*
 * Times several threads that append records to one file without a pause. The loops are those of the programs that
 * `weir advise` prints, so that a record takes the same locks as in them. src/shared.rs mirrors the structs field by field and
 * the values of the enum.
 */
#ifndef WEIR_BENCH_SHARED_H
#define WEIR_BENCH_SHARED_H

#include <stddef.h>
#include <stdint.h>

enum wb_sharing {
    WB_SHARED_BUFFER,         /* fwrite(3) behind a mutex */
    WB_SHARED_WRITE,          /* write(2) behind a mutex */
    WB_SHARED_LIBWEIR,        /* weir_putrec(3) into a buffer */
    WB_SHARED_LIBWEIR_WRITE,  /* weir_putrec(3) that writes at once */
    WB_SHARED_GROUP,          /* write(2), then one fdatasync(2) for all threads that wait */
    WB_SHARED_LIBWEIR_GROUP,  /* weir_putrec(3) and weir_sync(3) */
    WB_SHARED_EACH,           /* write(2) behind a mutex, then an fdatasync(2) of each thread's own */
    WB_SHARINGS
};

struct wb_shared_job {
    const char *path;      /* an existing file; records are appended */
    uint64_t records;      /* of each thread */
    uint64_t record_bytes; /* 1 to 4096 */
    uint64_t buffer_bytes; /* of the kinds with a buffer; the others ignore it */
    uint32_t kind;         /* enum wb_sharing */
    uint32_t writers;      /* 1 to WB_MAX_WRITERS */
};

#define WB_MAX_WRITERS 64

struct wb_shared_result {
    uint64_t elapsed_ns; /* from the start of the threads to the end of the last */
    uint64_t cpu_ns;     /* of the process in that time */
};

/* Runs one sample in this process. Returns 0, or -errno; *result is valid after 0 only. */
int wb_measure_shared(const struct wb_shared_job *job, struct wb_shared_result *result);

#endif
