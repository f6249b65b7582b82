/* Runs one sample and checks the properties that every sample has. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support.h"

static unsigned char expected_at(const struct wb_job *job, uint64_t offset)
{
    switch (job->workload) {
    case WB_COPY:
        return input_at(offset);
    case WB_TRANSLATE: {
        const unsigned char byte = input_at(offset);
        return byte >= 'a' && byte <= 'z' ? (unsigned char)(byte - 32) : byte;
    }
    default:
        return wb_text_at(offset, job->workload == WB_LOG ? job->record_bytes : WB_TEXT_LINE);
    }
}

static void compare_output(const struct wb_job *job)
{
    struct stat status;
    FILE *file = fopen(job->out_path, "r");
    if (!expect(file && fstat(fileno(file), &status) == 0, "%s: no output", job_text(job)))
        return;
    expect((uint64_t)status.st_size == job->bytes, "%s: %lld bytes", job_text(job),
           (long long)status.st_size);
    expect((status.st_mode & 07777) == 0600, "%s: mode %o", job_text(job), (unsigned)status.st_mode);
    for (uint64_t i = 0; i < job->bytes; i++) {
        const int byte = getc_unlocked(file);
        if (byte != expected_at(job, i)) {
            expect(false, "%s: byte %" PRIu64 " is %d, not %d", job_text(job), i, byte, expected_at(job, i));
            break;
        }
    }
    fclose(file);
}

struct call_counts {
    uint64_t reads, writes;
};

/* Returns the calls that the method counted, by the kernel's rules for syscr and syscw. */
static struct call_counts counted(const struct wb_job *job, const struct wb_result *result)
{
    struct stat status;
    struct call_counts sum = {0, 0};
    for (int i = 0; i < WB_CALL_KINDS; i++) {
        const struct wb_call_count *call = &result->calls[i];
        const bool moves = !strcmp(call->name, "sendfile") || !strcmp(call->name, "copy_file_range");
        if (moves || strstr(call->name, "read"))
            sum.reads += call->count;
        if (moves || strstr(call->name, "write"))
            sum.writes += call->count;
    }
    if (calls_of(result, "copy_file_range") && stat(job->in_path, &status) == 0 &&
        (uint64_t)status.st_size == job->bytes) {
        sum.reads--; /* the kernel does not count the call that returns 0 at the input's end */
        sum.writes--;
    }
    return sum;
}

static bool agrees_with_kernel(const struct wb_job *job, const struct wb_result *result)
{
    const struct call_counts sum = counted(job, result);
    if (!result->kernel_counts_known || short_run) /* valgrind makes calls of its own */
        return true;
    return sum.reads == result->kernel_reads && sum.writes == result->kernel_writes;
}

static void check_figures(const struct wb_job *job, const struct wb_result *result)
{
    const struct call_counts sum = counted(job, result);
    expect(agrees_with_kernel(job, result),
           "%s: counted %" PRIu64 " and %" PRIu64 ", the kernel %" PRIu64 " and %" PRIu64, job_text(job),
           sum.reads, sum.writes, result->kernel_reads, result->kernel_writes);
    expect(result->calls[WB_CALL_KINDS - 1].count == 0, "%s: the table of calls is full", job_text(job));
    expect(result->bytes_moved == job->bytes, "%s: %" PRIu64 " moved", job_text(job), result->bytes_moved);
    expect(result->records == passes_of(job), "%s: %" PRIu64 " records", job_text(job), result->records);
    expect(result->elapsed_ns ==
               result->open_ns + result->transfer_ns + result->sync_ns + result->close_ns,
           "%s: the parts do not add up", job_text(job));
    expect(result->elapsed_ns > 0 && result->cpu_ns > 0, "%s: no time", job_text(job));
    expect(result->clock_read_ns > 0 && result->empty_loop_ns > 0, "%s: no cost", job_text(job));
    expect(result->elapsed_ns < 60000000000u && result->open_ns < 60000000000u, "%s: times", job_text(job));
}

static void measure_once(const struct wb_job *job, struct wb_result *result)
{
    memset(result, 0xa5, sizeof *result); /* wb_measure() must not rely on zeroed memory */
    const int status = wb_measure(job, result);
    expect((uint32_t)status == result->status, "%s: returned %d", job_text(job), status);
}

/* Measures in a process of its own, in which no earlier sample has used a ring. */
static void measure_in_child(const struct wb_job *job, struct wb_result *result)
{
    struct wb_result *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!expect(shared != MAP_FAILED, "%s: mmap: %s", job_text(job), strerror(errno)))
        return;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        measure_once(job, shared);
        _exit(0);
    }
    int status = -1;
    expect(child > 0 && waitpid(child, &status, 0) == child && status == 0, "%s: the child ended with %d",
           job_text(job), status);
    *result = *shared;
    munmap(shared, sizeof *shared);
}

/* Measures, and measures again in a child if the kernel counted more calls than the method: the kernel frees the
 * closed ring of an earlier sample asynchronously, which can interrupt a call of a later sample in the same
 * process; the kernel restarts the call and counts it twice. */
static void measure(const struct wb_job *job, struct wb_result *result)
{
    measure_once(job, result);
    if (disturbed || result->status != WB_OK || agrees_with_kernel(job, result))
        return;
    if (job->out_path)
        unlink(job->out_path);
    measure_in_child(job, result);
}

struct wb_result run(const struct wb_job *job, bool may_be_unsupported)
{
    struct wb_result result;
    measure(job, &result);
    if (result.status == WB_CANNOT && may_be_unsupported)
        expect(result.text[0] != '\0', "%s: unsupported without a reason", job_text(job));
    else if (expect(result.status == WB_OK, "%s: %s", job_text(job), result_text(&result))) {
        if (!disturbed) /* an injected EINTR does not reach the kernel */
            check_figures(job, &result);
        if (job->out_path)
            compare_output(job);
    }
    if (job->out_path)
        unlink(job->out_path);
    return result;
}

struct wb_result run_failing(const struct wb_job *job, int error)
{
    struct wb_result result;
    memset(&result, 0xa5, sizeof result);
    wb_measure(job, &result);
    expect(result.status == WB_FAILED && result.error_number == error && result.error_call[0] != '\0',
           "%s: %s, not %s", job_text(job), result_text(&result), strerror(error));
    expect(result.text[0] == '\0', "%s: a failure has a remark: %s", job_text(job), result.text);
    return result;
}
