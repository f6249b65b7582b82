/* Short transfers and interrupted calls lose no byte. */
#include <string.h>

#include "support.h"

void test_short_calls(void)
{
    static const uint64_t records[] = {1, 100, 4096, 70000};
    struct wb_method_info info;
    make_input(100001);
    for (size_t i = 0; wb_method_at(i, &info); i++) {
        if ((info.options & WB_HAS_BUFFER) || strcmp(info.name, "mmap") == 0)
            continue; /* calls inside the C library are not wrapped; a mapping makes none */
        if (strcmp(info.name, "direct") == 0 || strcmp(info.name, "dontcache") == 0)
            continue; /* direct needs whole blocks; the calls of dontcache are not wrapped */
        begin("short calls %s", info.name);
        for (uint32_t workload = 0; workload < WB_WORKLOADS; workload++)
            for (int r = 0; r < 4; r++) {
                struct wb_job job = make_job(info.name, workload, r == 0 ? 5000 : 100001, records[r]);
                if (!(info.workloads & WB_BIT(workload)))
                    continue;
                disturbed = 1;
                run(&job, false);
                disturbed = 0;
            }
        end();
    }
}
