/* Finds methods by number and by name. The table is generated; the order of numbers is that of the names. */
#include <string.h>

#include "frame.h"

const struct wb_method *wb_method_named(const char *name)
{
    for (size_t i = 0; name && i < wb_methods_count; i++)
        if (strcmp(wb_methods[i]->name, name) == 0)
            return wb_methods[i];
    return NULL;
}

/* Returns the method with `rank` names before its name, or NULL. */
static const struct wb_method *method_of_rank(size_t rank)
{
    for (size_t i = 0; i < wb_methods_count; i++) {
        size_t before = 0;
        for (size_t k = 0; k < wb_methods_count; k++)
            before += strcmp(wb_methods[k]->name, wb_methods[i]->name) < 0;
        if (before == rank)
            return wb_methods[i];
    }
    return NULL;
}

bool wb_method_at(size_t i, struct wb_method_info *info)
{
    const struct wb_method *method = method_of_rank(i);
    if (!method)
        return false;
    *info = (struct wb_method_info){
        .name = method->name,
        .title = method->title,
        .workload_reason = method->workload_reason,
        .sync_reason = method->sync_reason,
        .workloads = method->workloads,
        .syncs = method->syncs,
        .options = method->options,
    };
    return true;
}

void wb_sizes(size_t sizes[WB_SIZES])
{
    sizes[0] = sizeof(struct wb_job);
    sizes[1] = sizeof(struct wb_result);
    sizes[2] = sizeof(struct wb_method_info);
    sizes[3] = sizeof(struct wb_cache_state);
}
