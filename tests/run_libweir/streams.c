/* streams.c: one use of libweir for each argument. Each step waits for a line on standard input, or for its end. */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir.h>

static void await_line(void)
{
    char c;
    while (read(0, &c, 1) == 1 && c != '\n') {
    }
}

static weir_stream *open_out(struct weir_options options)
{
    weir_stream *s;
    if (weir_open(&s, "out", O_WRONLY | O_CREAT | O_APPEND, &options) != 0)
        abort();
    return s;
}

/* Another process appends before the second line is put. Its offset is not at the end, so the file is opened without O_APPEND. */
static void lock_file(bool dies)
{
    weir_stream *s;
    struct weir_options options = {.flags = WEIR_LOCK_FILE};
    if (weir_open(&s, "out", O_WRONLY | O_CREAT, &options) != 0)
        abort();
    weir_put_str(s, "A1\n");
    weir_flush(s);
    await_line();
    weir_put_str(s, "a2\n");
    await_line();
    if (dies)
        kill(getpid(), SIGKILL);
    weir_close(s);
}

/* More bytes than a pipe takes. */
static void uring(void)
{
    weir_stream *s;
    struct weir_options options = {
        .mode = WEIR_FULL, .flags = WEIR_KEEP_OPEN | WEIR_URING, .buffer_bytes = 128 * 1024};
    if (weir_fdopen(&s, 1, &options) != 0)
        abort();
    for (int i = 0; i < 16000; i++) {
        char line[16];
        weir_write(s, line, (size_t)snprintf(line, sizeof line, "%09d\n", i));
    }
    await_line();
    weir_close(s);
}

static void sync_twice(void)
{
    struct weir_stats stats;
    weir_stream *s = open_out((struct weir_options){0});
    weir_put_str(s, "first\n");
    weir_sync(s, WEIR_DATA);
    weir_put_str(s, "second\n");
    await_line();
    int result = weir_sync(s, WEIR_DATA);
    weir_get_stats(s, &stats);
    fprintf(stderr, "result %d, syncs %d, written %d\n", result, (int)stats.syncs, (int)stats.written_bytes);
    weir_close(s);
}

static void reserve(void)
{
    char *to;
    weir_stream *s = open_out((struct weir_options){0});
    weir_put_str(s, "head ");
    if (weir_reserve(s, &to, 5) < 5)
        abort();
    memcpy(to, "tail\n", 5);
    await_line();
    fprintf(stderr, "commit %d\n", weir_commit(s, 5));
    weir_close(s);
}

static void fork_keep(void)
{
    weir_stream *s = open_out((struct weir_options){.on_fork = WEIR_FORK_KEEP});
    weir_put_str(s, "parent\n");
    pid_t child = fork();
    if (child == 0) {
        await_line();
        weir_put_str(s, "child1\n");
        execlp("true", "true", (char *)NULL);
        _exit(127);
    }
    waitpid(child, NULL, 0);
    weir_close(s);
}

static void records(void)
{
    weir_stream *s;
    struct weir_options options = {.mode = WEIR_RECORD, .flags = WEIR_KEEP_OPEN};
    if (weir_fdopen(&s, 1, &options) != 0)
        abort();
    for (int i = 0; i < 60; i++) {
        char record[101];
        snprintf(record, sizeof record, "%099d\n", i);
        weir_write(s, record, 100);
    }
    await_line();
    weir_close(s);
}

int main(int argc, char **argv)
{
    const char *use = argc > 1 ? argv[1] : "";
    if (!strncmp(use, "lock", 4))
        lock_file(!strcmp(use, "lock-die"));
    else if (!strcmp(use, "uring"))
        uring();
    else if (!strcmp(use, "sync"))
        sync_twice();
    else if (!strcmp(use, "reserve"))
        reserve();
    else if (!strcmp(use, "fork"))
        fork_keep();
    else if (!strcmp(use, "records"))
        records();
    return 0;
}
