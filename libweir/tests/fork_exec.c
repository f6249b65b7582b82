/* fork_exec.c: a process that writes through a stream makes a child after each of its steps, in every way
 * there is, and the child ends in every way there is. What the parent wrote is there once and in order, what
 * the child wrote as well; with WEIR_FORK_KEEP what waited is there twice if the child goes on, as stdio has
 * it. Every case runs in a process of its own. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../src/private.h"
#include "support/check.h"

extern char **environ;

enum way { FORK, CLONE, VFORK, SPAWN, WAYS };
enum child_does { JUST_EXIT, EXIT, ABORT, WRITE_CLOSE, WRITE_EXIT, EXEC, EXEC_FAILS, WRITE_EXEC, CHILD_DOES };
enum parent_ends { BY_CLOSE, BY_EXIT, BY_UNDERSCORE_EXIT, BY_ABORT, BY_EXEC, PARENT_ENDS };
enum sink { PLAIN_FILE, APPENDED_FILE, PIPE, SINKS };

static const char *const way_names[] = {"fork", "clone", "vfork", "spawn"};
static const char *const child_names[] = {"_exit", "exit", "abort", "write+close", "write+exit", "exec", "exec fails", "write+exec"};
static const char *const parent_names[] = {"close", "exit", "_exit", "abort", "exec"};

struct one_case {
    enum way way;
    enum child_does child;
    enum parent_ends parent;
    enum sink sink;
    int step; /* after how many of the parent's steps */
    struct weir_options options;
};

/* ---- what the parent writes: small letters; the child: capitals ---- */

enum { STEPS = 10 };

static void step(weir_stream *s, int number)
{
    switch (number) {
    case 0: weir_putc(s, 'a'); break;
    case 1: weir_write(s, "bcd\n", 4); break;
    case 2: weir_printf(s, "e%s", "f"); break;
    case 3: weir_putrec(s, "ghi", 3); break;
    case 4: weir_put_str(s, "jkl\nmn"); break;
    case 5: weir_flush(s); break;
    case 6: weir_putrec(s, "opq", 3); break;
    case 7: weir_put_u64(s, 12345); break;
    case 8: weir_endrec(s); break;
    default: weir_write(s, "rstuvwxyz0123456789\n", 20);
    }
}

static const char all_of_it[] = "abcd\nefghi\njkl\nmnopq\n12345\nrstuvwxyz0123456789\n";
static const char of_child[] = "CHILD\n";

static void child_part(weir_stream *s, enum child_does does)
{
    char *const arguments[] = {"true", NULL};
    if (does == WRITE_CLOSE || does == WRITE_EXIT || does == WRITE_EXEC)
        weir_putrec(s, of_child, sizeof of_child - 2);
    switch (does) {
    case EXIT:
    case WRITE_EXIT: exit(0);
    case ABORT: kill(getpid(), SIGABRT); break; /* after clone(2), musl's abort(3) would hit the parent's thread */
    case WRITE_CLOSE: _exit(weir_close(s) != 0);
    case EXEC:
    case WRITE_EXEC: execv("/bin/true", arguments); break;
    case EXEC_FAILS: execv("/no/such/program", arguments); break;
    default: break;
    }
    _exit(0);
}

static pid_t make_child(weir_stream *s, const struct one_case *c)
{
    pid_t child = -1;
    char *const arguments[] = {"true", NULL};
    switch (c->way) {
    case FORK: child = fork(); break;
    case CLONE: child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0); break;
    case VFORK:
        child = vfork();
        if (child == 0) {
            if (c->child == EXEC)
                execv("/bin/true", arguments);
            if (c->child == EXEC_FAILS)
                execvp("no-such-program-at-all", arguments);
            _exit(0);
        }
        break;
    default:
        if (posix_spawn(&child, "/bin/true", NULL, NULL, arguments, environ) != 0)
            child = -1;
    }
    if (child == 0)
        child_part(s, c->child);
    return child;
}

/* The process of a case. */
static void parent_part(int fd, const struct one_case *c)
{
    weir_stream *s = NULL;
    if (weir_fdopen(&s, fd, &c->options) < 0)
        _exit(101);
    for (int i = 0; i <= STEPS; i++) {
        if (i == c->step) {
            int status;
            pid_t child = make_child(s, c);
            if (child < 0 || waitpid(child, &status, 0) != child)
                _exit(102);
            bool aborted = c->child == ABORT && c->way <= CLONE;
            if (aborted ? !WIFSIGNALED(status) : status != 0)
                _exit(103);
        }
        if (i < STEPS)
            step(s, i);
    }
    char *const arguments[] = {"true", NULL};
    switch (c->parent) {
    case BY_CLOSE: _exit(weir_close(s) != 0);
    case BY_EXIT: exit(0);
    case BY_ABORT: abort();
    case BY_EXEC: execvp("true", arguments); break;
    default: break;
    }
    _exit(0);
}

/* ---- what must be there ---- */

struct expected {
    char text[400];
    size_t least; /* what comes behind may be lost: the parent was killed */
};

/* How much has left the buffer by then: of a stream with the same options that makes no children. */
static size_t written_after(const struct one_case *c, int steps)
{
    int ends[2];
    weir_stream *s = NULL;
    struct weir_options options = c->options;
    options.on_fork = WEIR_FORK_EMPTY;
    char bytes[400];
    if (pipe2(ends, O_NONBLOCK) != 0 || weir_fdopen(&s, ends[1], &options) < 0)
        abort();
    for (int i = 0; i < steps; i++)
        step(s, i);
    ssize_t got = read(ends[0], bytes, sizeof bytes);
    weir_close(s);
    close(ends[0]);
    return got < 0 ? 0 : (size_t)got;
}

static size_t accepted_after(int steps)
{
    static const size_t lengths[STEPS] = {1, 4, 2, 4, 6, 0, 4, 5, 1, 20};
    size_t all = 0;
    for (int i = 0; i < steps; i++)
        all += lengths[i];
    return all;
}

static void make_expected(const struct one_case *c, struct expected *e)
{
    size_t out = written_after(c, c->step), accepted = accepted_after(c->step), used = 0;
    bool forked = c->way <= CLONE;
    bool goes_on = c->child == EXIT || c->child == WRITE_CLOSE || c->child == WRITE_EXIT;
    bool writes = forked && (c->child == WRITE_CLOSE || c->child == WRITE_EXIT || c->child == WRITE_EXEC);
    bool keeps = c->options.on_fork == WEIR_FORK_KEEP && forked;
    bool through = c->options.mode == WEIR_NONE || c->options.mode == WEIR_LINE;
    if (c->way == FORK && c->options.on_fork == WEIR_FORK_FLUSH)
        out = accepted;
    memcpy(e->text, all_of_it, used = out);
    if (keeps && (goes_on || (writes && through))) {
        memcpy(e->text + used, all_of_it + out, accepted - out);
        used += accepted - out;
    }
    if (writes && !(keeps && c->child == WRITE_EXEC && !through)) {
        memcpy(e->text + used, of_child, sizeof of_child - 1);
        used += sizeof of_child - 1;
    }
    strcpy(e->text + used, all_of_it + out);
    size_t lost = sizeof all_of_it - 1 - written_after(c, STEPS);
    e->least = strlen(e->text) - (c->parent == BY_ABORT || c->parent == BY_UNDERSCORE_EXIT ? lost : 0);
}

static int open_sink(enum sink sink, int *other)
{
    char path[] = "/tmp/weir-fork-XXXXXX";
    int ends[2];
    if (sink == PIPE) {
        if (pipe2(ends, O_CLOEXEC) != 0)
            abort();
        *other = ends[0];
        return ends[1];
    }
    int fd = mkstemp(path);
    *other = open(path, O_RDONLY | O_CLOEXEC);
    unlink(path);
    if (sink == APPENDED_FILE)
        fcntl(fd, F_SETFL, O_APPEND);
    return fd;
}

static void run_case(const struct one_case *c)
{
    struct expected e;
    make_expected(c, &e);
    char is[1000];
    int other, status, fd = open_sink(c->sink, &other);
    pid_t parent = fork();
    if (parent == 0)
        parent_part(fd, c);
    close(fd);
    waitpid(parent, &status, 0);
    ssize_t got = read(other, is, sizeof is - 1), all = got;
    while (c->sink == PIPE && got > 0 && (got = read(other, is + all, sizeof is - 1 - (size_t)all)) > 0)
        all += got;
    is[all < 0 ? 0 : all] = '\0';
    close(other);
    bool well = all >= (ssize_t)e.least && strncmp(is, e.text, (size_t)all) == 0;
    bool ended = c->parent == BY_ABORT ? WIFSIGNALED(status) : status == 0;
    check(well && ended, "%s, child %s, parent %s, step %d, sink %d, mode %d, on_fork %d: status %x\n  is:  %s\n  not: %s",
          way_names[c->way], child_names[c->child], parent_names[c->parent], c->step, (int)c->sink, (int)c->options.mode,
          (int)c->options.on_fork, (unsigned)status, is, e.text);
}

static bool makes_sense(const struct one_case *c)
{
    if (c->way == SPAWN)
        return c->child == EXEC;
    if (c->way == VFORK)
        return c->child == JUST_EXIT || c->child == EXEC || c->child == EXEC_FAILS;
    return true;
}

static void every_step(enum way way, enum weir_on_fork on_fork, uint64_t rounds)
{
    static const char *const kinds[] = {"empty", "flush", "keep"};
    check_begin("%s at every step, %s", way_names[way], kinds[on_fork]);
    struct random r = random_from((uint64_t)way * 10 + on_fork);
    for (uint64_t round = 0; round < rounds; round++)
        for (int child = 0; child < CHILD_DOES; child++)
            for (int at = 0; at <= STEPS; at++) {
                struct one_case c = {.way = way, .child = (enum child_does)child, .step = at};
                c.parent = (enum parent_ends)random_below(&r, PARENT_ENDS);
                c.sink = (enum sink)random_below(&r, SINKS);
                c.options.mode = (enum weir_mode)(1 + random_below(&r, 4));
                c.options.flags = random_below(&r, 2) ? WEIR_THREADS : 0;
                c.options.on_fork = on_fork;
                if (makes_sense(&c))
                    run_case(&c);
            }
}

/* ---- a parent with threads and the timer ---- */

static weir_stream *busy;
static _Atomic bool stop;

static void *write_on(void *count)
{
    for (uint64_t i = 0; !stop; i++, ++*(uint64_t *)count)
        if (weir_printf(busy, "p%llu\n", (unsigned long long)i) < 0)
            break;
    return NULL;
}

static void forks_among_threads(enum weir_on_fork on_fork, enum weir_mode mode)
{
    check_begin("children of a process with threads and a timer, on_fork %d, mode %d", (int)on_fork, (int)mode);
    if (CHECK_SANITIZED) {
        check_skip("the sanitizer's own threads do not survive fork");
        return;
    }
    enum { CHILDREN = 150 };
    int other, fd = open_sink(APPENDED_FILE, &other), failed = 0;
    struct weir_options options = {.mode = mode, .on_fork = on_fork, .stale_ms = 1, .flags = WEIR_THREADS, .buffer_bytes = 500};
    check(weir_fdopen(&busy, fd, &options) == 0, "opens");
    pthread_t thread;
    uint64_t count = 0;
    stop = false;
    pthread_create(&thread, NULL, write_on, &count);
    for (int i = 0; i < CHILDREN; i++) {
        pid_t child = i % 2 ? fork() : (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
        if (child == 0) {
            weir_printf(busy, "c%d\n", i);
            if (i % 4 < 2)
                sleep_seconds(0.003); /* its own timer */
            _exit(weir_close(busy) != 0);
        }
        int status = -1;
        waitpid(child, &status, 0);
        failed += status != 0;
    }
    stop = true;
    pthread_join(thread, NULL);
    check(weir_close(busy) == 0 && failed == 0, "%d children failed", failed);
    FILE *f = fdopen(other, "r");
    char line[100];
    uint64_t next = 0, children[CHILDREN] = {0}, torn = 0;
    while (fgets(line, sizeof line, f)) {
        int child = line[0] == 'c' ? atoi(line + 1) : -1;
        if (child >= 0 && child < CHILDREN)
            children[child]++;
        else if (line[0] != 'p' || strtoull(line + 1, NULL, 10) != next++)
            torn++;
    }
    fclose(f);
    check(torn == 0 && next == count, "%llu of %llu lines, %llu torn or doubled", (unsigned long long)next,
          (unsigned long long)count, (unsigned long long)torn);
    for (int i = 0; i < CHILDREN; i++)
        check(children[i] == 1, "child %d wrote %llu times", i, (unsigned long long)children[i]);
}

int main(int count, char **arguments)
{
    uint64_t rounds = check_option(count, arguments, "rounds", 2);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    for (int way = 0; way < WAYS; way++)
        for (int on_fork = WEIR_FORK_EMPTY; on_fork <= WEIR_FORK_KEEP; on_fork++)
            every_step((enum way)way, (enum weir_on_fork)on_fork, rounds);
    forks_among_threads(WEIR_FORK_EMPTY, WEIR_RECORD);
    forks_among_threads(WEIR_FORK_FLUSH, WEIR_RECORD);
    forks_among_threads(WEIR_FORK_EMPTY, WEIR_LINE);
    return check_finish("fork_exec");
}
