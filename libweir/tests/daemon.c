/* daemon.c: daemon(3) writes pending bytes before the process continues in a child, as every stream of it would expect. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define WEIR_STDIO_NO_NAMES
#include <weir/stdio.h>

#include "../src/private.h"
#include "support/check.h"

static char directory[] = "/tmp/weir-daemon-XXXXXX", path[64], input[64];

/* Runs `job` in a process, and waits for it and for its children. Returns its exit status. */
static int run(void (*job)(void))
{
    int alive[2], status = -1;
    char byte;
    if (pipe(alive) != 0)
        abort();
    unlink(path);
    pid_t child = fork();
    if (child == 0) {
        close(alive[0]);
        job();
        _exit(100); /* not reached */
    }
    close(alive[1]);
    check(read(alive[0], &byte, 1) == 0, "the end of all processes");
    close(alive[0]);
    waitpid(child, &status, 0);
    return status;
}

/* Returns the content of the file. */
static const char *text(void)
{
    static char is[200];
    int fd = open(path, O_RDONLY);
    ssize_t got = read(fd, is, sizeof is - 1);
    is[got < 0 ? 0 : got] = '\0';
    close(fd);
    return is;
}

static void stdio_job(void)
{
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    dup2(fd, STDOUT_FILENO);
    weir_stdio_printf("starting\n");
    if (daemon(1, 1) != 0)
        _exit(1);
    weir_stdio_printf("running\n");
    exit(0);
}

static struct weir_options options;

static void stream_job(void)
{
    weir_stream *s;
    if (weir_open(&s, path, O_WRONLY | O_CREAT, &options) != 0)
        _exit(2);
    weir_put_str(s, "starting\n");
    if (daemon(1, 1) != 0)
        _exit(1);
    weir_put_str(s, "running\n");
    exit(0);
}

/* The child continues to read a file behind the last byte that the process has read. */
static void reading_job(void)
{
    char *record;
    weir_stream *in, *out;
    if (weir_open(&in, input, O_RDONLY, NULL) != 0 || weir_open(&out, path, O_WRONLY | O_CREAT, NULL) != 0)
        _exit(2);
    weir_getrec(in, &record);
    if (daemon(1, 1) != 0)
        _exit(1);
    ssize_t bytes = weir_getrec(in, &record);
    weir_write(out, record, bytes > 0 ? (size_t)bytes : 0);
    exit(0);
}

static void detached_job(void)
{
    char where[10];
    struct stat status;
    weir_stream *s;
    weir_open(&s, path, O_WRONLY | O_CREAT, NULL);
    if (daemon(0, 0) != 0)
        _exit(1);
    bool null = fstat(STDIN_FILENO, &status) == 0 && S_ISCHR(status.st_mode);
    weir_printf(s, "%d %d %s\n", getsid(0) == getpid(), null, getcwd(where, sizeof where));
    exit(0);
}

static void streams(void)
{
    static const enum weir_on_fork all[] = {WEIR_FORK_EMPTY, WEIR_FORK_FLUSH, WEIR_FORK_KEEP};
    check_begin("standard output of weir/stdio.h");
    check(run(stdio_job) == 0 && strcmp(text(), "starting\nrunning\n") == 0, "%s", text());
    for (int i = 0; i < 3; i++)
        for (unsigned flags = 0; flags <= WEIR_THREADS; flags += WEIR_THREADS) {
            check_begin("a stream, on_fork %d, flags %u", (int)all[i], flags);
            options = (struct weir_options){.on_fork = all[i], .flags = flags};
            check(run(stream_job) == 0 && strcmp(text(), "starting\nrunning\n") == 0, "%s", text());
        }
    check_begin("a WEIR_KILL stream");
    char spill[64];
    snprintf(spill, sizeof spill, "%s/spill", directory);
    options = (struct weir_options){.durability = WEIR_KILL, .spill = spill};
    check(run(stream_job) == 0 && strcmp(text(), "starting\nrunning\n") == 0, "%s", text());
    check(access(spill, F_OK) != 0, "the spill file is left");
}

int main(void)
{
    if (!mkdtemp(directory))
        return 1;
    snprintf(path, sizeof path, "%s/out", directory);
    snprintf(input, sizeof input, "%s/in", directory);
    int fd = open(input, O_WRONLY | O_CREAT, 0600);
    if (write(fd, "one\ntwo\n", 8) != 8)
        return 1;
    close(fd);
    streams();
    check_begin("a stream that reads a file");
    check(run(reading_job) == 0 && strcmp(text(), "two\n") == 0, "%s", text());
    check_begin("what else daemon(3) does");
    check(run(detached_job) == 0 && strcmp(text(), "1 1 /\n") == 0, "%s", text());
    unlink(path);
    unlink(input);
    check(rmdir(directory) == 0, "files are left");
    return check_finish("daemon");
}
