/* Calls that move less than they are asked to and calls that a signal interrupts lose no byte. */
#include <string.h>

#include "support.h"

void test_short_calls(void)
{
    static const uint64_t records[] = {1, 100, 4096, 70000};
    struct wb_method_facts facts;
    make_input(100001);
    for (size_t i = 0; wb_method_at(i, &facts); i++) {
        if ((facts.options & WB_HAS_BUFFER) || strcmp(facts.name, "mmap") == 0)
            continue; /* the C library's calls are its own; a mapping has none */
        if (strcmp(facts.name, "direct") == 0 || strcmp(facts.name, "dontcache") == 0)
            continue; /* half a block is no length for the one, the other goes past the test */
        begin("short calls %s", facts.name);
        for (uint32_t workload = 0; workload < WB_WORKLOADS; workload++)
            for (int r = 0; r < 4; r++) {
                struct wb_job job = a_job(facts.name, workload, r == 0 ? 5000 : 100001, records[r]);
                if (!(facts.workloads & WB_BIT(workload)))
                    continue;
                disturbed = 1;
                run(&job, false);
                disturbed = 0;
            }
        end();
    }
}
