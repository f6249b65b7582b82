/* A failure has the call, the file and errno; an unsupported job has the reason. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "frame.h"
#include "shared.h"
#include "support.h"

static void files(void)
{
    struct stat before, after;
    begin("the output exists");
    make_input(100);
    struct wb_job job = make_job("syscall", WB_COPY, 100, 10);
    job.out_path = job.in_path;
    stat(in_path(), &before);
    struct wb_result result = run_failing(&job, EEXIST);
    expect(strcmp(result.error_path, in_path()) == 0, "path %s", result.error_path);
    stat(in_path(), &after);
    expect(after.st_size == 100 && before.st_mtime == after.st_mtime, "it was touched");
    end();

    begin("the output is a symbolic link");
    expect(symlink("elsewhere", out_path()) == 0, "symlink");
    job = make_job("stdio", WB_WRITE, 100, 10);
    run_failing(&job, EEXIST);
    unlink(out_path());
    end();

    begin("the input is missing");
    unlink(in_path());
    struct wb_method_info info;
    for (size_t i = 0; wb_method_at(i, &info); i++) {
        job = make_job(info.name, WB_COPY, 100, 4096);
        result = run_failing(&job, ENOENT);
        expect(strcmp(result.error_call, "openat") == 0 && strcmp(result.error_path, in_path()) == 0, "%s",
               result_text(&result));
        expect(access(out_path(), F_OK) != 0, "%s made an output", info.name);
    }
    end();

    begin("the directory is missing");
    job = make_job("syscall", WB_WRITE, 100, 10);
    job.out_path = "/nowhere/at/all";
    run_failing(&job, ENOENT);
    end();
}

/* Refusal of the first call means that the method is not supported, also if a signal interrupted that call before. */
static void refused_after_a_signal(void)
{
    static const char *const methods[] = {"sendfile", "splice", "copy_file_range"};
    begin("a first call that is refused after EINTR");
    make_input(100);
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        struct wb_job job = make_job(methods[i], WB_COPY, 100, 10);
        struct wb_result result;
        refuse_after_eintr = 1;
        wb_measure(&job, &result);
        refuse_after_eintr = 0;
        expect(result.status == WB_CANNOT && strstr(result.text, methods[i]), "%s: %s", methods[i],
               result_text(&result));
        unlink(out_path());
    }
    end();
}

static void write_file(const char *directory, const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "w");
    if (!expect(file && fputs(text, file) >= 0 && fclose(file) == 0, "%s: %s", path, strerror(errno)))
        return;
}

/* The limit of a cgroup holds for the groups in it; pages of files do not count. */
static void memory_of_groups(void)
{
    char outer[256], inner[300];
    begin("the limits of cgroups");
    snprintf(outer, sizeof outer, "%s.group", out_path());
    snprintf(inner, sizeof inner, "%s/in", outer);
    expect(mkdir(outer, 0700) == 0 && mkdir(inner, 0700) == 0, "mkdir: %s", strerror(errno));
    expect(wb_group_bytes(outer, "/in") == UINT64_MAX, "without files");
    write_file(inner, "memory.max", "max\n");
    write_file(inner, "memory.current", "900\n");
    expect(wb_group_bytes(outer, "/in") == UINT64_MAX, "without a limit");
    write_file(outer, "memory.max", "1000\n");
    write_file(outer, "memory.current", "900\n");
    expect(wb_group_bytes(outer, "/in") == 100, "the outer limit");
    write_file(outer, "memory.stat", "anon 500\ninactive_file 300\nactive_file 100\nshmem 7\n");
    expect(wb_group_bytes(outer, "/in") == 500, "pages of files");
    write_file(inner, "memory.max", "800\n");
    expect(wb_group_bytes(outer, "/in") == 0, "a full inner group");
    for (const char *const *name = (const char *const[]){"memory.max", "memory.current", "memory.stat", NULL};
         *name; name++) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", inner, *name);
        unlink(path);
        snprintf(path, sizeof path, "%s/%s", outer, *name);
        unlink(path);
    }
    rmdir(inner);
    rmdir(outer);
    end();
}

static void shorter_input(void)
{
    struct wb_method_info info;
    begin("the input is shorter than the job");
    make_input(100001);
    for (size_t i = 0; wb_method_at(i, &info); i++) {
        struct wb_job job = make_job(info.name, WB_COPY, 300000, 4096);
        if (strcmp(info.name, "direct") == 0 || strcmp(info.name, "dontcache") == 0)
            continue; /* the file system may not support them */
        run_failing(&job, strcmp(info.name, "mmap") == 0 ? EIO : ENODATA);
        unlink(out_path());
    }
    end();
}

/* The second record exceeds the limit: a short write, then the error. */
static void file_size_limit(void)
{
    const struct rlimit low = {6000, RLIM_INFINITY}, high = {RLIM_INFINITY, RLIM_INFINITY};
    struct wb_method_info info;
    begin("too large a file");
    make_input(100001);
    for (size_t i = 0; wb_method_at(i, &info); i++)
        for (uint32_t workload = 0; workload < WB_WORKLOADS; workload++) {
            struct wb_job job = make_job(info.name, workload, 100001, 4096);
            if (!(info.workloads & WB_BIT(workload)) || workload == WB_READ ||
                strcmp(info.name, "direct") == 0 || strcmp(info.name, "dontcache") == 0)
                continue;
            if (info.options & WB_HAS_BUFFER) /* a buffer larger than the job would fail only in close(2) */
                job.buffer_bytes = 4096;
            setrlimit(RLIMIT_FSIZE, &low);
            const struct wb_result result = run_failing(&job, EFBIG);
            setrlimit(RLIMIT_FSIZE, &high);
            expect(strcmp(result.error_path, out_path()) == 0, "path %s", result.error_path);
            expect(result.bytes_moved < 100001, "%s: all moved", job_text(&job));
            unlink(out_path());
        }
    end();
}

/* The second record exceeds the limit while the thread of the first one syncs, which succeeds. */
static void error_beside_a_sync(void)
{
    const struct rlimit low = {64, RLIM_INFINITY}, high = {RLIM_INFINITY, RLIM_INFINITY};
    const char *before = current_directory;
    struct wb_shared_result result;
    begin("one thread fails while another syncs");
    current_directory = disk_directory;
    const struct wb_shared_job job = {
        .path = out_path(), .records = 1, .record_bytes = 64, .kind = WB_SHARED_GROUP, .writers = 2};
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &low);
    for (int i = 0; i < 50; i++) {
        const int fd = open(out_path(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        expect(fd >= 0 && close(fd) == 0, "%s: %s", out_path(), strerror(errno));
        const int status = wb_measure_shared(&job, &result);
        expect(status == -EFBIG, "sample %d: %s", i, strerror(-status));
    }
    setrlimit(RLIMIT_FSIZE, &high);
    signal(SIGXFSZ, SIG_DFL);
    unlink(out_path());
    current_directory = before;
    end();
}

static void memory(void)
{
    begin("no memory for a buffer");
    struct wb_job job = make_job("vector", WB_WRITE, 100, 1 << 29);
    job.vector_records = 1024;
    run_failing(&job, ENOMEM);
    job = make_job("stdio", WB_WRITE, 100, 10);
    job.buffer_bytes = UINT64_MAX;
    run_failing(&job, ENOMEM);
    job.buffer_bytes = (uint64_t)1 << 46;
    run_failing(&job, ENOMEM);
    job = make_job("io_uring", WB_COPY, 100, 1 << 29);
    job.queue_depth = 4096;
    run_failing(&job, ENOMEM);
    expect(access(out_path(), F_OK) != 0, "an output was made");
    end();
}

static void invalid_jobs(void)
{
    struct wb_job job = make_job("sycall", WB_COPY, 1, 1);
    begin("invalid jobs");
    expect(strcmp(run_failing(&job, EINVAL).error_call, "method") == 0, "unknown method");
    job.method = NULL;
    run_failing(&job, EINVAL);
#define WRONG(method, field, value)                                                                          \
    job = make_job(method, WB_COPY, 1, 1);                                                                   \
    job.field = value;                                                                                       \
    expect(strcmp(run_failing(&job, EINVAL).error_call, #field) == 0, #field " " #value)
    WRONG("syscall", record_bytes, 0);
    WRONG("syscall", record_bytes, UINT64_MAX);
    WRONG("syscall", record_bytes, (UINT64_C(1) << 30) + 1);
    WRONG("syscall", bytes, UINT64_MAX);
    WRONG("syscall", workload, WB_WORKLOADS);
    WRONG("syscall", sync, WB_SYNCS);
    WRONG("syscall", mode, 9);
    WRONG("syscall", in_path, NULL);
    WRONG("syscall", out_path, NULL);
    WRONG("vector", vector_records, 0);
    WRONG("vector", vector_records, 1025);
    WRONG("io_uring", queue_depth, 0);
    WRONG("io_uring", queue_depth, 4097);
    /* The largest record is valid: the next field is the wrong one. */
    job = make_job("vector", WB_COPY, 1, UINT64_C(1) << 30);
    job.vector_records = 0;
    expect(strcmp(run_failing(&job, EINVAL).error_call, "vector_records") == 0, "a record of 1 GiB");
    job = make_job("syscall", WB_COPY, 1, 1);
    job.sync = WB_SYNC_FSYNC;
    job.sync_every_bytes = 0;
    run_failing(&job, EINVAL);
    end();
}

/* An unsupported job fails before the output is created. */
static void reasons(void)
{
    struct wb_method_info info;
    begin("unsupported workloads and syncs");
    for (size_t i = 0; wb_method_at(i, &info); i++)
        for (uint32_t workload = 0; workload < WB_WORKLOADS; workload++)
            for (uint32_t sync = 0; sync < WB_SYNCS; sync++) {
                struct wb_job job = make_job(info.name, workload, 1, 4096);
                struct wb_result result;
                job.sync = sync;
                const bool reads = workload == WB_READ && sync != WB_SYNC_NONE;
                if ((info.workloads & WB_BIT(workload)) && (info.syncs & WB_BIT(sync)) && !reads)
                    continue;
                wb_measure(&job, &result);
                expect(result.status == WB_CANNOT && strlen(result.text) > 10, "%s: %s", job_text(&job),
                       result_text(&result));
                expect(access(out_path(), F_OK) != 0, "%s: an output was made", job_text(&job));
            }
    end();
}

void test_errors(void)
{
    files();
    refused_after_a_signal();
    memory_of_groups();
    shorter_input();
    file_size_limit();
    error_beside_a_sync();
    memory();
    invalid_jobs();
    reasons();
}
