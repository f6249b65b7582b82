/* other_processes.c: a stream and other processes: several processes write records to the same file, and one process
 * reads the pending bytes of another. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir.h>

#include "support/check.h"

/* ---- several processes, one file ---- */

static void check_records(int fd, int writers, int records)
{
    FILE *f = fdopen(fd, "r");
    char *line = NULL;
    size_t room = 0;
    int next[8] = {0}, count = 0;
    for (ssize_t got; (got = getline(&line, &room, f)) > 0; count++) {
        int writer = line[0] - 'a', number = atoi(line + 1);
        char *filler = strchr(line, ' ');
        bool whole = writer >= 0 && writer < writers && filler && number == next[writer];
        for (; whole && *++filler != '\n';)
            whole = *filler == line[0];
        if (!check(whole, "torn or out of order: %.60s", line))
            break;
        next[writer]++;
    }
    check(count == writers * records, "%d records of %d", count, writers * records);
    free(line);
    fclose(f);
}

static void many_writers(bool pipe_between, unsigned flags)
{
    enum { WRITERS = 4, RECORDS = 800 };
    check_begin("4 processes write records to one %s%s", pipe_between ? "pipe" : "file", flags ? " with a lock" : "");
    char name[] = "/tmp/weir-modes-XXXXXX";
    int ends[2] = {-1, -1}, keep = mkstemp(name);
    if (pipe_between && pipe(ends) != 0)
        abort();
    for (int w = 0; w < WRITERS; w++) {
        if (fork() != 0)
            continue;
        weir_stream *s;
        struct weir_options options = {.mode = WEIR_RECORD, .buffer_bytes = 5000, .flags = flags};
        int oflags = flags & WEIR_LOCK_FILE ? O_WRONLY : O_WRONLY | O_APPEND;
        int opened = pipe_between ? weir_fdopen(&s, ends[1], &options) : weir_open(&s, name, oflags, &options);
        struct random r = random_from((uint64_t)w);
        char record[1000];
        for (int i = 0; opened == 0 && i < RECORDS; i++) {
            int length = sprintf(record, "%c%d ", 'a' + w, i);
            size_t filler = random_below(&r, i % 100 == 9 ? 900 : 90);
            memset(record + length, 'a' + w, filler);
            weir_putrec(s, record, (size_t)length + filler);
        }
        _exit(opened < 0 || weir_close(s) != 0);
    }
    if (pipe_between) {
        close(ends[1]);
        char bytes[8192];
        for (ssize_t got; (got = read(ends[0], bytes, sizeof bytes)) > 0;)
            if (write(keep, bytes, (size_t)got) != got)
                abort();
        close(ends[0]);
        lseek(keep, 0, SEEK_SET);
    }
    for (int status; wait(&status) > 0;)
        check(status == 0, "a writer ended with %x", (unsigned)status);
    check_records(keep, WRITERS, RECORDS);
    unlink(name);
}

/* ---- pending bytes of another process ---- */

static bool read_memory(pid_t pid, const void *from, void *to, size_t bytes)
{
    struct iovec here = {to, bytes}, there = {(void *)(uintptr_t)from, bytes};
    return process_vm_readv(pid, &here, 1, &there, 1, 0) == (ssize_t)bytes;
}

/* Finds streams as a tool does that knows only weir.h: by the magic at the start of a page. Copies the pending bytes of
 * the last stream found. Returns the number of streams. */
static int find_pending(pid_t pid, char *pending, size_t most, weir_stream *found)
{
    char name[64], line[300];
    int streams = 0;
    snprintf(name, sizeof name, "/proc/%d/maps", (int)pid);
    FILE *maps = fopen(name, "r");
    while (maps && fgets(line, sizeof line, maps)) {
        uintptr_t start, end;
        weir_stream s;
        if (sscanf(line, "%zx-%zx rw", &start, &end) != 2)
            continue;
        for (uintptr_t at = start; at < end; at += 4096) {
            if (!read_memory(pid, (void *)at, &s, sizeof s) || s.magic != WEIR_STREAM_MAGIC || s.layout != WEIR_LAYOUT)
                continue;
            if (s.head.magic != WEIR_HEAD_MAGIC || s.head.pid != pid || s.head.written - s.head.base <= s.head.drained)
                continue;
            size_t bytes = s.head.written - s.head.base - s.head.drained;
            if (bytes < most && read_memory(pid, s.buffer + s.head.drained, pending, bytes)) {
                pending[bytes] = '\0';
                *found = s;
                streams++;
            }
        }
    }
    if (maps)
        fclose(maps);
    return streams;
}

static void pending_bytes_of_a_process(void)
{
    check_begin("pending bytes of another process");
    int ready[2];
    char byte, pending[200];
    weir_stream found = {0};
    check(pipe(ready) == 0, "a pipe");
    pid_t child = fork();
    if (child == 0) {
        weir_stream *s;
        struct weir_options options = {.mode = WEIR_LINE, .buffer_bytes = 777};
        weir_open(&s, "/dev/null", O_WRONLY, &options);
        char *to;
        weir_put_str(s, "gone\n");
        weir_reserve(s, &to, 20), memcpy(to, "line\nis pending", 15), weir_commit(s, 15);
        weir_reserve(s, &to, 20), memcpy(to, "not committed", 13);
        if (write(ready[1], "x", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    check(read(ready[0], &byte, 1) == 1, "the child failed");
    int streams = find_pending(child, pending, sizeof pending, &found);
    if (streams == 0 && !read_memory(child, &byte, &byte, 1))
        check_skip("process_vm_readv is not allowed here");
    else if (check(streams == 1, "%d streams have pending bytes", streams))
        check(strcmp(pending, "is pending") == 0 && found.head.buffer_bytes == 777, "%s in a buffer of %llu", pending,
              (unsigned long long)found.head.buffer_bytes);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    close(ready[0]);
    close(ready[1]);
}

int main(void)
{
    many_writers(false, 0);
    many_writers(true, 0);
    many_writers(false, WEIR_LOCK_FILE);
    pending_bytes_of_a_process();
    return check_finish("other_processes");
}
