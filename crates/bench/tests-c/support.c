#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool short_run;
const char *current_directory;
char memory_directory[256], disk_directory[256];

static char name[128];
static int passed, failed, skipped;
static unsigned long checks, broken;

void begin(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    checks = broken = 0;
}

bool expect(bool holds, const char *format, ...)
{
    checks++;
    if (holds)
        return true;
    if (++broken > 5)
        return false; /* one bug can break hundreds of cases; the first five are enough */
    va_list arguments;
    printf("  %s: ", name);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n");
    return false;
}

void skip(const char *format, ...)
{
    va_list arguments;
    printf("%s SKIP ", name);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n");
    skipped++;
    checks = 0;
}

void end(void)
{
    if (broken > 0)
        printf("%s FAILED (%lu of %lu)\n", name, broken, checks);
    else if (checks > 0)
        printf("%s ok (%lu)\n", name, checks);
    failed += broken > 0;
    passed += broken == 0 && checks > 0;
    fflush(stdout);
}

int summary(void)
{
    printf("c: %d passed, %d failed, %d skipped\n", passed, failed, skipped);
    return failed > 0;
}

static void make_directory(char *path, size_t size, const char *parent)
{
    snprintf(path, size, "%s/weir-bench-test-XXXXXX", parent);
    if (!mkdtemp(path)) {
        perror(path);
        exit(1);
    }
}

void make_directories(void)
{
    const char *disk = getenv("TMPDIR");
    disk = disk && *disk ? disk : "/tmp";
    make_directory(disk_directory, sizeof disk_directory, disk);
    make_directory(memory_directory, sizeof memory_directory, access("/dev/shm", W_OK) ? disk : "/dev/shm");
    current_directory = memory_directory;
}

void remove_directories(void)
{
    const char *both[] = {memory_directory, disk_directory};
    for (int i = 0; i < 2; i++) {
        current_directory = both[i];
        unlink(in_path());
        unlink(out_path());
        if (rmdir(current_directory) != 0)
            perror(current_directory);
    }
}

static char *path_of(char *path, const char *file)
{
    snprintf(path, 300, "%s/%s", current_directory, file);
    return path;
}

const char *in_path(void)
{
    static char path[300];
    return path_of(path, "in");
}

const char *out_path(void)
{
    static char path[300];
    return path_of(path, "out");
}

unsigned char input_at(uint64_t offset)
{
    uint64_t x = (offset + 1) * 0x9e3779b97f4a7c15u;
    x ^= x >> 29;
    return (unsigned char)(x * 0xbf58476d1ce4e5b9u >> 56);
}

void make_input(uint64_t bytes)
{
    FILE *file = fopen(in_path(), "w");
    for (uint64_t i = 0; file && i < bytes; i++)
        putc_unlocked(input_at(i), file);
    if (!file || fclose(file) != 0) {
        perror(in_path());
        exit(1);
    }
}

struct wb_job make_job(const char *method, uint32_t workload, uint64_t bytes, uint64_t record)
{
    const bool in = workload != WB_WRITE && workload != WB_LOG;
    return (struct wb_job){
        .method = method,
        .in_path = in ? in_path() : NULL,
        .out_path = workload == WB_READ ? NULL : out_path(),
        .bytes = bytes,
        .record_bytes = record,
        .workload = workload,
        .vector_records = 3,
        .queue_depth = 4,
        .advice = WB_ADVICE_NONE,
        .sync_every_bytes = 1 << 20,
    };
}

const char *job_text(const struct wb_job *job)
{
    static const char *const workloads[] = {"copy", "write", "read", "translate", "log"};
    static char text[256];
    snprintf(text, sizeof text,
             "%s %s of %" PRIu64 " by %" PRIu64 " buffer %" PRIu64
             " mode %u vector %u depth %u%s sync %u/%" PRIu64,
             job->method, workloads[job->workload % WB_WORKLOADS], job->bytes, job->record_bytes,
             job->buffer_bytes, job->mode, job->vector_records, job->queue_depth,
             job->registered ? " registered" : "", job->sync, job->sync_every_bytes);
    return text;
}

const char *result_text(const struct wb_result *result)
{
    static char text[600];
    snprintf(text, sizeof text, "status %u: %s %s: %s: %s (%" PRIu64 " bytes)", result->status,
             result->error_call, result->error_path, strerror(result->error_number), result->text,
             result->bytes_moved);
    return text;
}

uint64_t calls_of(const struct wb_result *result, const char *call)
{
    for (int i = 0; i < WB_CALL_KINDS; i++)
        if (strcmp(result->calls[i].name, call) == 0)
            return result->calls[i].count;
    return 0;
}

bool find_method(const char *method, struct wb_method_info *info)
{
    for (size_t i = 0; wb_method_at(i, info); i++)
        if (strcmp(info->name, method) == 0)
            return true;
    return false;
}

uint64_t passes_of(const struct wb_job *job)
{
    struct wb_method_info info = {0};
    find_method(job->method, &info);
    uint64_t pass = info.options & WB_HAS_RECORD ? job->record_bytes : 1;
    if (info.options & WB_HAS_VECTOR)
        pass *= job->vector_records;
    return (job->bytes + pass - 1) / pass;
}
