/* Counts of system calls: those that a method counts, and those that the kernel counts. */
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

/* Reads the number after `key` in the text of /proc/self/io. */
static bool number_of(const char *text, const char *key, uint64_t *number)
{
    const char *found = strstr(text, key);
    unsigned long long value;
    if (!found || sscanf(found + strlen(key), "%llu", &value) != 1)
        return false;
    *number = value;
    return true;
}

/* Reads the counters with one pread(2), which the kernel counts only after it has printed the counters. */
static bool read_io_counters(int fd, uint64_t *reads, uint64_t *writes)
{
    char text[512];
    ssize_t got = pread(fd, text, sizeof text - 1, 0);
    if (got <= 0)
        return false;
    text[got] = '\0';
    return number_of(text, "syscr: ", reads) && number_of(text, "syscw: ", writes);
}

void wb_io_start(struct wb_io_counters *counters)
{
    uint64_t first_reads, first_writes;
    counters->fd = open("/proc/self/io", O_RDONLY | O_CLOEXEC);
    if (counters->fd < 0)
        return;
    if (!read_io_counters(counters->fd, &first_reads, &first_writes) ||
        !read_io_counters(counters->fd, &counters->reads, &counters->writes)) {
        close(counters->fd);
        counters->fd = -1;
        return;
    }
    /* The difference of two consecutive reads is the cost of one read. The kernel counts the second read after
     * it has printed the counters, so its cost is added to the start values. */
    counters->reads += counters->reads - first_reads;
    counters->writes += counters->writes - first_writes;
}

void wb_io_end(struct wb_io_counters *counters, struct wb_run *run)
{
    struct wb_result *result = run->result;
    uint64_t reads, writes;
    if (counters->fd < 0)
        return;
    if (read_io_counters(counters->fd, &reads, &writes)) {
        result->kernel_counts_known = 1;
        result->kernel_reads = reads - counters->reads;
        result->kernel_writes = writes - counters->writes;
        if (result->kernel_counted) {
            wb_count(run, "read", result->kernel_reads);
            wb_count(run, "write", result->kernel_writes);
        }
    }
    close(counters->fd);
}
