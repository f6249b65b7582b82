/* How many system calls there were: as a method counts its own, and as the kernel counts them all. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "frame.h"

void wb_count(struct wb_run *run, const char *call, uint64_t count)
{
    struct wb_call_count *calls = run->result->calls;
    if (count == 0) /* also a call without a name */
        return;
    for (size_t i = 0; i < WB_CALL_KINDS; i++) {
        if (calls[i].name[0] == '\0')
            snprintf(calls[i].name, sizeof calls[i].name, "%s", call);
        if (strcmp(calls[i].name, call) == 0) {
            calls[i].count += count;
            return;
        }
    }
}

/* The number after `key` in the text of /proc/self/io. */
static bool number_of(const char *text, const char *key, uint64_t *number)
{
    const char *found = strstr(text, key);
    unsigned long long value;
    if (!found || sscanf(found + strlen(key), "%llu", &value) != 1)
        return false;
    *number = value;
    return true;
}

/* One look is one pread(2), which the kernel counts only after it has printed the counts. */
static bool look_once(int fd, uint64_t *reads, uint64_t *writes)
{
    char text[512];
    ssize_t got = pread(fd, text, sizeof text - 1, 0);
    if (got <= 0)
        return false;
    text[got] = '\0';
    return number_of(text, "syscr: ", reads) && number_of(text, "syscw: ", writes);
}

void wb_io_start(struct wb_io_look *look)
{
    uint64_t first_reads, first_writes;
    look->fd = open("/proc/self/io", O_RDONLY | O_CLOEXEC);
    if (look->fd < 0)
        return;
    if (!look_once(look->fd, &first_reads, &first_writes) ||
        !look_once(look->fd, &look->reads, &look->writes)) {
        close(look->fd);
        look->fd = -1;
        return;
    }
    /* What two looks back to back differ by is what a look costs: the second one is in the next. */
    look->reads += look->reads - first_reads;
    look->writes += look->writes - first_writes;
}

void wb_io_end(struct wb_io_look *look, struct wb_run *run)
{
    struct wb_result *result = run->result;
    uint64_t reads, writes;
    if (look->fd < 0)
        return;
    if (look_once(look->fd, &reads, &writes)) {
        result->kernel_counts_known = 1;
        result->kernel_reads = reads - look->reads;
        result->kernel_writes = writes - look->writes;
        if (result->kernel_counted) {
            wb_count(run, "read", result->kernel_reads);
            wb_count(run, "write", result->kernel_writes);
        }
    }
    close(look->fd);
}
