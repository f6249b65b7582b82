/* Allocates buffers: aligned, touched, and only if the machine has enough available memory. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frame.h"

enum {
    ALIGNMENT = 4096,
    UNCHECKED_BYTES = 1 << 20 /* for less, a read of /proc/meminfo costs more than it prevents */
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

unsigned char *wb_allocate(struct wb_run *run, uint64_t bytes)
{
    void *memory = NULL;
    const bool fits = bytes <= UNCHECKED_BYTES || (bytes <= PTRDIFF_MAX && bytes < available_bytes());
    const int error = fits ? posix_memalign(&memory, ALIGNMENT, bytes ? bytes : 1) : ENOMEM;
    if (error != 0) {
        wb_fail(run, "posix_memalign", NULL, error);
        return NULL;
    }
    memset(memory, 0, bytes); /* a page fault later would be measured */
    return memory;
}
