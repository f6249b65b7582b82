/* Compares the counted calls with computed numbers; run() has compared them with the kernel's counts. */
#include <string.h>
#include <unistd.h>

#include "support.h"

static void calls(const struct wb_job *job, const struct wb_result *result, const char *call, uint64_t count)
{
    expect(calls_of(result, call) == count, "%s: %llu of %s, not %llu", job_text(job),
           (unsigned long long)calls_of(result, call), call, (unsigned long long)count);
}

/* One get and one put per pass; one more get at the end of the whole input. */
static void pairs(const char *method, const char *get, const char *put)
{
    static const uint64_t sizes[] = {0, 1, 4095, 4096, 100001};
    begin("calls %s", method);
    for (int s = 0; s < 5; s++)
        for (uint64_t record = 64; record <= 65536; record *= 8)
            for (uint64_t part = 0; part <= sizes[s] / 2; part += sizes[s] / 2 + 1) {
                make_input(sizes[s] + part);
                struct wb_job job = make_job(method, WB_COPY, sizes[s], record);
                const struct wb_result copied = run(&job, false);
                calls(&job, &copied, get, passes_of(&job) + (part == 0));
                if (put)
                    calls(&job, &copied, put, passes_of(&job));
                calls(&job, &copied, "openat", 2);
                calls(&job, &copied, "close", 2);
                if (!put)
                    continue;
                job = make_job(method, WB_WRITE, sizes[s], record);
                const struct wb_result written = run(&job, false);
                calls(&job, &written, put, passes_of(&job));
                calls(&job, &written, get, 0);
                job = make_job(method, WB_READ, sizes[s], record);
                const struct wb_result read = run(&job, false);
                calls(&job, &read, get, passes_of(&job) + (part == 0));
                calls(&job, &read, put, 0);
            }
    end();
}

static uint64_t blocks(uint64_t bytes, uint64_t block)
{
    return (bytes + block - 1) / block;
}

/* One full buffer per call, independent of the record (glibc: with a buffer of at least 128 bytes); without a
 * buffer one byte or one record per call. */
static void streams(const char *method)
{
    const bool chars = strstr(method, "char") != NULL;
    begin("calls %s", method);
    if (short_run) {
        skip("the kernel also counts valgrind's calls");
        return;
    }
    make_input(20000);
    for (uint64_t buffer = 256; buffer <= 65536; buffer *= 4) {
        struct wb_job job = make_job(method, WB_COPY, 20000, 16);
        job.mode = WB_MODE_FULL;
        job.buffer_bytes = buffer;
        const struct wb_result full = run(&job, false);
        calls(&job, &full, "write", blocks(20000, buffer));
        calls(&job, &full, "read", blocks(20000, buffer) + 1);
    }
    struct wb_job job = make_job(method, WB_COPY, 20000, 16);
    job.mode = WB_MODE_NONE;
    const struct wb_result none = run(&job, false);
    calls(&job, &none, "write", chars ? 20000 : 1250);
    job = make_job(method, WB_LOG, 20000, 50);
    job.mode = WB_MODE_LINE;
    const struct wb_result lines = run(&job, false);
    calls(&job, &lines, "write", 400);
    job = make_job(method, WB_LOG, 20000, 50);
    const struct wb_result untouched = run(&job, false);
    const uint64_t writes = calls_of(&untouched, "write");
    expect(writes > 0 && writes <= blocks(20000, 512), "the default buffer: %llu writes",
           (unsigned long long)writes);
    end();
}

static void others(void)
{
    make_input(100001);
    begin("calls io_uring");
    struct wb_job job = make_job("io_uring", WB_COPY, 100001, 4096);
    job.queue_depth = 1;
    const struct wb_result ring = run(&job, false);
    calls(&job, &ring, "io_uring_enter", 50);
    calls(&job, &ring, "io_uring_setup", 1);
    end();
    begin("calls mmap");
    job = make_job("mmap", WB_COPY, 100001, 4096);
    const struct wb_result maps = run(&job, false);
    calls(&job, &maps, "mmap", 2);
    calls(&job, &maps, "munmap", 2);
    calls(&job, &maps, "ftruncate", 1);
    end();
    begin("calls splice");
    job = make_job("splice", WB_COPY, 100001, 4096);
    const struct wb_result spliced = run(&job, false);
    expect(calls_of(&spliced, "splice") >= 51, "fewer than two per record and one for the end");
    end();
}

void test_counts(void)
{
    pairs("syscall", "read", "write");
    pairs("pread-pwrite", "pread64", "pwrite64");
    pairs("vector", "readv", "writev");
    pairs("sendfile", "sendfile", NULL);
    pairs("copy_file_range", "copy_file_range", NULL);
    streams("stdio");
    streams("libweir");
    streams("stdio-unlocked");
    streams("stdio-char");
    streams("stdio-char-unlocked");
    others();
}
