/* Allocates buffers: aligned, touched, and only if the machine has enough available memory. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frame.h"

enum {
    ALIGNMENT = 4096,
    UNCHECKED_BYTES = 1 << 20 /* for less, the reads of /proc and of the cgroups cost more than they prevent */
};

/* Returns MemAvailable, or UINT64_MAX (rounded down) if the kernel does not report it. */
static uint64_t available_bytes(void)
{
    unsigned long long kilobytes = UINT64_MAX / 1024;
    char line[128];
    FILE *file = fopen("/proc/meminfo", "re");
    if (!file)
        return UINT64_MAX;
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %llu", &kilobytes) == 1)
            break;
    fclose(file);
    return kilobytes * 1024;
}

/* Returns the number in the first line of a file, or `otherwise` if there is none, as in memory.max without a limit. */
static uint64_t number_in(const char *directory, const char *name, uint64_t otherwise)
{
    char path[PATH_MAX];
    unsigned long long number = otherwise;
    if ((size_t)snprintf(path, sizeof path, "%s/%s", directory, name) >= sizeof path)
        return otherwise;
    FILE *file = fopen(path, "re");
    if (!file)
        return otherwise;
    if (fscanf(file, "%llu", &number) != 1)
        number = otherwise;
    fclose(file);
    return number;
}

/* Returns the bytes of file pages that a cgroup is charged for. The kernel can reclaim them. */
static uint64_t reclaimable_bytes(const char *directory)
{
    char path[PATH_MAX], line[128];
    unsigned long long sum = 0, bytes;
    if ((size_t)snprintf(path, sizeof path, "%s/memory.stat", directory) >= sizeof path)
        return 0;
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "inactive_file %llu", &bytes) == 1 || sscanf(line, "active_file %llu", &bytes) == 1)
            sum += bytes;
    fclose(file);
    return sum;
}

uint64_t wb_group_bytes(const char *root, const char *group)
{
    char directory[PATH_MAX];
    uint64_t least = UINT64_MAX;
    const size_t root_length = strlen(root);
    if ((size_t)snprintf(directory, sizeof directory, "%s%s", root, group) >= sizeof directory)
        return UINT64_MAX;
    for (;;) {
        const uint64_t limit = number_in(directory, "memory.max", UINT64_MAX);
        const uint64_t used = number_in(directory, "memory.current", 0), files = reclaimable_bytes(directory);
        const uint64_t kept = used > files ? used - files : 0, left = limit > kept ? limit - kept : 0;
        if (limit != UINT64_MAX && left < least)
            least = left;
        char *parent = strrchr(directory + root_length, '/');
        if (!parent)
            return least;
        *parent = 0;
    }
}

/* Returns the bytes that the limits of this process's cgroups leave; UINT64_MAX without a limit or without version 2. */
static uint64_t own_group_bytes(void)
{
    char line[PATH_MAX + 8];
    uint64_t bytes = UINT64_MAX;
    FILE *file = fopen("/proc/self/cgroup", "re");
    if (!file)
        return UINT64_MAX;
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        if (strncmp(line, "0::", 3) == 0)
            bytes = wb_group_bytes("/sys/fs/cgroup", line + 3);
    }
    fclose(file);
    return bytes;
}

unsigned char *wb_allocate(struct wb_run *run, uint64_t bytes)
{
    void *memory = NULL;
    if (bytes > UNCHECKED_BYTES &&
        (bytes > PTRDIFF_MAX || bytes >= available_bytes() || bytes >= own_group_bytes())) {
        wb_fail(run, "memory check", NULL, ENOMEM);
        return NULL;
    }
    const int error = posix_memalign(&memory, ALIGNMENT, bytes ? bytes : 1);
    if (error != 0) {
        wb_fail(run, "posix_memalign", NULL, error);
        return NULL;
    }
    memset(memory, 0, bytes); /* a page fault later would be measured */
    return memory;
}
