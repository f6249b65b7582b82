/* What the tests share: names and counts of tests, files with known bytes, and running one sample. */
#ifndef WEIR_BENCH_SUPPORT_H
#define WEIR_BENCH_SUPPORT_H

#include <stdio.h>

#include "job.h"

/* One test: begin, any number of expectations, end. Names are printed with "ok", "FAILED" or "SKIP". */
void begin(const char *format, ...) __attribute__((format(printf, 1, 2)));
bool expect(bool holds, const char *format, ...) __attribute__((format(printf, 2, 3)));
void skip(const char *format, ...) __attribute__((format(printf, 1, 2)));
void end(void);
int summary(void); /* the last line; the exit status */

extern bool short_run;      /* fewer cases, for a checker that is slow and makes calls of its own */
extern const char *where;   /* the directory of the files now, one of these two */
extern char memory_directory[256], disk_directory[256];

void make_directories(void);
void remove_directories(void);
const char *in_path(void);
const char *out_path(void);

/* The byte at `offset` of every input. */
unsigned char input_at(uint64_t offset);
/* Makes the input anew with `bytes` bytes. */
void make_input(uint64_t bytes);

/* A job with sensible fields: syscall, copy, no sync, no advice; everything else may be set after. */
struct wb_job a_job(const char *method, uint32_t workload, uint64_t bytes, uint64_t record);
/* One line that tells the job from others. */
const char *job_text(const struct wb_job *job);
const char *result_text(const struct wb_result *result);
/* Measures, checks what holds for every result that is WB_OK, compares every byte of the output with what
 * it should be, and removes the output. `may_not`: WB_CANNOT is fine too. */
struct wb_result run(const struct wb_job *job, bool may_not);
/* As run(), for a job that has to fail: with this errno. */
struct wb_result run_failing(const struct wb_job *job, int error);
uint64_t calls_of(const struct wb_result *result, const char *name);
bool method_facts(const char *name, struct wb_method_facts *facts);
uint64_t passes_of(const struct wb_job *job);

/* disturb.c: while not 0, calls move about half of what is asked, and each third is interrupted. */
extern int disturbed;
extern bool no_cachestat; /* the kernel has none */
/* What has been seen since they were cleared. */
extern int most_parts;           /* of a readv or writev */
extern uint64_t largest_part;    /* of those, bytes */
enum { SYNCS_SEEN = 64 };
extern uint64_t size_at_sync[SYNCS_SEEN]; /* of the file, at each fsync */
extern int syncs_seen;

/* The tests, a file each. */
void test_matrix(void);
void test_options(void);
void test_syncs(void);
void test_counts(void);
void test_short_calls(void);
void test_errors(void);
void test_full(void);
void test_looks(void);

#endif
