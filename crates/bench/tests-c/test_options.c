/* The axes that only some methods have: buffer and mode, records per call, queue depth, advice. */
#include <fcntl.h>
#include <sys/resource.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support.h"

static const uint64_t sizes[] = {0, 4096, 100001};
enum { SIZES = 3 };

static void modes_of(const char *method)
{
    static const uint64_t buffers[] = {0, 1, 16, 1000, 4096, 65536};
    static const uint64_t records[] = {7, 1000, 4096, 70000};
    begin("modes and buffers %s", method);
    for (int s = 0; s < SIZES; s++) {
        make_input(sizes[s]);
        for (uint32_t workload = 0; workload < WB_WORKLOADS; workload++)
            for (uint32_t mode = 0; mode <= WB_MODE_FULL; mode++)
                for (int b = 0; b < 6; b++)
                    for (int r = 0; r < 4; r++) {
                        struct wb_job job = make_job(method, workload, sizes[s], records[r]);
                        const bool chars = strstr(method, "char");
                        job.mode = mode;
                        job.buffer_bytes = buffers[b];
                        if (chars && r > 0 && workload != WB_LOG)
                            continue;
                        if ((chars && (mode == WB_MODE_NONE || buffers[b] == 1)) || short_run)
                            job.bytes = sizes[s] < 5000 ? sizes[s] : 5000; /* a call a byte */
                        run(&job, false);
                    }
    }
    end();
}

static void vectors(void)
{
    static const uint32_t counts[] = {1, 2, 16, 1024};
    static const uint64_t records[] = {1, 3, 100, 4096};
    begin("records per call vector");
    for (int s = 0; s < SIZES; s++) {
        make_input(sizes[s]);
        for (uint32_t workload = 0; workload < WB_WORKLOADS; workload++)
            for (int c = 0; c < 4; c++)
                for (int r = 0; r < 4; r++) {
                    struct wb_job job = make_job("vector", workload, sizes[s], records[r]);
                    job.vector_records = counts[c];
                    if (passes_of(&job) >= 20000)
                        continue;
                    max_parts = 0;
                    largest_part = 0;
                    run(&job, false);
                    uint64_t parts = (sizes[s] + records[r] - 1) / records[r];
                    if (parts > counts[c] || job.in_path) /* the read at the input's end is a full vector */
                        parts = counts[c];
                    expect(max_parts == (int)parts, "%s: %d parts", job_text(&job), max_parts);
                    expect(largest_part <= records[r], "%s: too large a part", job_text(&job));
                }
    }
    end();
}

static void queues(void)
{
    static const uint32_t depths[] = {1, 2, 32, 4096};
    static const uint64_t records[] = {61, 4096, 65536};
    begin("queues and registered buffers io_uring");
    for (int s = 0; s < SIZES; s++) {
        make_input(sizes[s]);
        for (uint32_t workload = 0; workload < WB_WORKLOADS; workload++)
            for (int d = 0; d < 4; d++)
                for (int r = 0; r < 3; r++)
                    for (uint32_t registered = 0; registered < 2; registered++) {
                        struct wb_job job = make_job("io_uring", workload, sizes[s], records[r]);
                        job.queue_depth = depths[d];
                        job.registered = registered;
                        if (depths[d] * records[r] <= 1 << 24 || workload == WB_WRITE)
                            run(&job, false);
                    }
    }
    end();
}

enum { UNREACHABLE = 77 };

/* Checks that a process with a low RLIMIT_MEMLOCK gets unregistered buffers and a remark. */
static void unregistered_child(void)
{
    const struct rlimit little = {1 << 18, 1 << 18}; /* enough for the ring, not for the buffers */
    struct wb_job job = make_job("io_uring", WB_COPY, 100001, 1 << 20);
    job.registered = 1;
    if (setrlimit(RLIMIT_MEMLOCK, &little) != 0 || setuid(65534) != 0)
        _exit(2);
    if (access(in_path(), R_OK) != 0)
        _exit(UNREACHABLE);
    const struct wb_result result = run(&job, true);
    if (result.status == WB_OK && calls_of(&result, "io_uring_register") == 1 &&
        strstr(result.text, "not registered"))
        _exit(0);
    printf("  %s\n", result_text(&result));
    fflush(stdout);
    _exit(1);
}

static void unregistered(void)
{
    int status = 0;
    begin("registering refused io_uring");
    if (geteuid() != 0) {
        skip("needs root to change to a user with a memory limit");
        return;
    }
    make_input(100001);
    expect(chmod(current_directory, 0777) == 0 && chmod(in_path(), 0644) == 0, "chmod");
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0)
        unregistered_child();
    waitpid(child, &status, 0);
    chmod(current_directory, 0700);
    if (WIFEXITED(status) && WEXITSTATUS(status) == UNREACHABLE) {
        skip("%s cannot be reached without root", current_directory);
        return;
    }
    expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", (unsigned)status);
    end();
}

static void advice(void)
{
    static const char *const methods[] = {"syscall", "stdio", "mmap", "io_uring"};
    begin("advice");
    make_input(100001);
    for (int m = 0; m < 4; m++)
        for (int32_t advice = POSIX_FADV_NORMAL; advice <= POSIX_FADV_NOREUSE; advice++) {
            struct wb_job job = make_job(methods[m], WB_COPY, 100001, 4096);
            job.advice = advice;
            const struct wb_result result = run(&job, false);
            expect(calls_of(&result, "fadvise64") == 1, "%s: not given", methods[m]);
        }
    end();
}

void test_options(void)
{
    modes_of("stdio");
    modes_of("stdio-unlocked");
    modes_of("stdio-char");
    modes_of("stdio-char-unlocked");
    vectors();
    queues();
    unregistered();
    advice();
}
