/* Every method by every workload, record, size, option and policy, and everything that can go wrong. */
#include <string.h>
#include <unistd.h>

#include "support.h"

static const char *const workloads[] = {"copy", "write", "read", "translate", "log"};
static const uint64_t records[] = {1, 3, 64, 512, 4096, 65536, 1 << 20};
static const uint64_t sizes[] = {0, 1, 4095, 4096, 100001, (1 << 20) + 3};
enum { RECORDS = sizeof records / sizeof records[0], SIZES = sizeof sizes / sizeof sizes[0] };

/* Passes of one sample: what keeps the whole in its minute. */
static uint64_t most_passes(void)
{
    return short_run ? 500 : where == disk_directory ? 10000 : 40000;
}

/* One method and workload: all records and sizes, the whole input and a part of it. */
static void matrix_of(const struct wb_method_facts *facts, uint32_t workload, uint64_t size, bool part)
{
    for (int r = 0; r < RECORDS; r++) {
        struct wb_job job = a_job(facts->name, workload, size, records[r]);
        if (!(facts->options & WB_HAS_RECORD) && workload != WB_LOG && r > 0)
            break; /* the record means nothing to it */
        if (passes_of(&job) > most_passes() && !(facts->options & WB_HAS_BUFFER))
            continue;
        if (short_run && passes_of(&job) > most_passes())
            continue;
        if (part)
            job.bytes -= job.bytes / 3;
        run(&job, strcmp(facts->name, "direct") == 0 || strcmp(facts->name, "dontcache") == 0);
    }
}

static void matrix_in(const char *directory, const char *title)
{
    struct wb_method_facts facts;
    where = directory;
    for (size_t i = 0; wb_method_at(i, &facts); i++)
        for (uint32_t workload = 0; workload < WB_WORKLOADS; workload++) {
            if (!(facts.workloads & WB_BIT(workload)))
                continue;
            begin("%s %s %s", title, facts.name, workloads[workload]);
            for (int s = 0; s < SIZES; s++) {
                make_input(sizes[s]);
                matrix_of(&facts, workload, sizes[s], false);
                if (sizes[s] == 100001 && workload != WB_WRITE && workload != WB_LOG)
                    matrix_of(&facts, workload, sizes[s], true);
            }
            end();
        }
}

void test_matrix(void)
{
    matrix_in(memory_directory, "memory");
    matrix_in(disk_directory, "disk");
    where = memory_directory;
}

int main(int count, char **arguments)
{
    short_run = count > 1 && strcmp(arguments[1], "--short") == 0;
    make_directories();
    test_looks();
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
