/* Runs all tests; the matrix is every method with every workload, record and size. */
#include <string.h>
#include <unistd.h>

#include "support.h"

static const char *const workloads[] = {"copy", "write", "read", "translate", "log"};
static const uint64_t records[] = {1, 3, 64, 512, 4096, 65536, 1 << 20};
static const uint64_t sizes[] = {0, 1, 4095, 4096, 100001, (1 << 20) + 3};
enum { RECORDS = sizeof records / sizeof records[0], SIZES = sizeof sizes / sizeof sizes[0] };

/* Returns the limit of passes per sample that keeps all tests below a minute. */
static uint64_t max_passes(void)
{
    return short_run ? 500 : current_directory == disk_directory ? 10000 : 40000;
}

/* Runs one method and workload with all records, on the whole input or a part of it. */
static void matrix_of(const struct wb_method_info *info, uint32_t workload, uint64_t size, bool part)
{
    for (int r = 0; r < RECORDS; r++) {
        struct wb_job job = make_job(info->name, workload, size, records[r]);
        if (!(info->options & WB_HAS_RECORD) && workload != WB_LOG && r > 0)
            break; /* the method ignores the record size */
        if (passes_of(&job) > max_passes() && !(info->options & WB_HAS_BUFFER))
            continue;
        if (short_run && passes_of(&job) > max_passes())
            continue;
        if (part)
            job.bytes -= job.bytes / 3;
        run(&job, strcmp(info->name, "direct") == 0 || strcmp(info->name, "dontcache") == 0);
    }
}

static void matrix_in(const char *directory, const char *title)
{
    struct wb_method_info info;
    current_directory = directory;
    for (size_t i = 0; wb_method_at(i, &info); i++)
        for (uint32_t workload = 0; workload < WB_WORKLOADS; workload++) {
            if (!(info.workloads & WB_BIT(workload)))
                continue;
            begin("%s %s %s", title, info.name, workloads[workload]);
            for (int s = 0; s < SIZES; s++) {
                make_input(sizes[s]);
                matrix_of(&info, workload, sizes[s], false);
                if (sizes[s] == 100001 && workload != WB_WRITE && workload != WB_LOG)
                    matrix_of(&info, workload, sizes[s], true);
            }
            end();
        }
}

void test_matrix(void)
{
    matrix_in(memory_directory, "memory");
    matrix_in(disk_directory, "disk");
    current_directory = memory_directory;
}

int main(int count, char **arguments)
{
    short_run = count > 1 && strcmp(arguments[1], "--short") == 0;
    make_directories();
    test_queries();
    test_matrix();
    test_options();
    test_counts();
    test_syncs();
    test_short_calls();
    test_errors();
    test_full();
    remove_directories();
    return summary();
}
