/* Code that the tests share: names and counts of tests, files with known bytes, and running one sample. */
#ifndef WEIR_BENCH_SUPPORT_H
#define WEIR_BENCH_SUPPORT_H

#include <stdio.h>

#include "job.h"

/* A test is begin(), any number of expect(), end(). Names are printed with "ok", "FAILED" or "SKIP". */
void begin(const char *format, ...) __attribute__((format(printf, 1, 2)));
bool expect(bool holds, const char *format, ...) __attribute__((format(printf, 2, 3)));
void skip(const char *format, ...) __attribute__((format(printf, 1, 2)));
void end(void);
int summary(void); /* prints the last line; returns the exit status */

extern bool short_run;      /* fewer cases, for valgrind, which is slow and makes calls of its own */
extern const char *current_directory; /* where tests make files: one of the two below */
extern char memory_directory[256], disk_directory[256];

void make_directories(void);
void remove_directories(void);
const char *in_path(void);
const char *out_path(void);

/* Returns the byte at `offset` of every input. */
unsigned char input_at(uint64_t offset);
/* Replaces the input by one with `bytes` bytes. */
void make_input(uint64_t bytes);

/* Returns a job without sync and advice, with small values for the options. */
struct wb_job make_job(const char *method, uint32_t workload, uint64_t bytes, uint64_t record);
/* Returns one line that identifies the job. */
const char *job_text(const struct wb_job *job);
const char *result_text(const struct wb_result *result);
/* Measures, checks the properties of every WB_OK result, compares every byte of the output with the expected
 * one, and removes the output. `may_be_unsupported`: accepts WB_CANNOT. */
struct wb_result run(const struct wb_job *job, bool may_be_unsupported);
/* Measures a job that must fail with this errno. */
struct wb_result run_failing(const struct wb_job *job, int error);
uint64_t calls_of(const struct wb_result *result, const char *name);
bool find_method(const char *name, struct wb_method_info *info);
uint64_t passes_of(const struct wb_job *job);

/* disturb.c: while not 0, calls move about half of the requested bytes, and every third fails with EINTR. */
extern int disturbed;
extern int refuse_after_eintr; /* 1: the next call fails with EINTR, and those after it with EOPNOTSUPP */
extern bool no_cachestat; /* cachestat(2) fails with ENOSYS */
/* Records of disturb.c; a test resets them. */
extern int max_parts;            /* largest iovcnt of a readv or writev */
extern uint64_t largest_part;    /* largest iov_len of these, bytes */
enum { MAX_SYNCS = 64 };
extern uint64_t size_at_sync[MAX_SYNCS]; /* of the file, at each fsync */
extern int sync_count;

/* The tests; each is in its own file. */
void test_matrix(void);
void test_options(void);
void test_syncs(void);
void test_counts(void);
void test_short_calls(void);
void test_errors(void);
void test_full(void);
void test_queries(void);

#endif
