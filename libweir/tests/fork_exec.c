/* fork_exec.c: a process that writes through a stream makes a child after each of its steps, with every function, and
 * the child ends in every manner. The parent's bytes and the child's bytes are written once and in order; with
 * WEIR_FORK_KEEP pending bytes are written twice if the child exits normally, as with stdio; an exec writes only those of
 * the child, and none after clone(2). Every case runs in its own process. */
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

enum fork_call { FORK, CLONE, VFORK, SPAWN, FORK_CALLS };
enum child_action { JUST_EXIT, EXIT, ABORT, WRITE_CLOSE, WRITE_EXIT, EXEC, EXEC_FAILS, WRITE_EXEC, CHILD_ACTIONS };
enum parent_end { BY_CLOSE, BY_EXIT, BY_UNDERSCORE_EXIT, BY_ABORT, BY_EXEC, PARENT_ENDS };
enum sink { PLAIN_FILE, APPENDED_FILE, PIPE, SINKS };

static const char *const fork_names[] = {"fork", "clone", "vfork", "spawn"};
static const char *const child_names[] = {"_exit",      "exit", "abort",      "write+close",
                                          "write+exit", "exec", "exec fails", "write+exec"};
static const char *const parent_names[] = {"close", "exit", "_exit", "abort", "exec"};

struct one_case {
    enum fork_call fork_call;
    enum child_action child;
    enum parent_end parent;
    enum sink sink;
    int step; /* number of the parent's steps before the fork */
    struct weir_options options;
};

/* ---- the parent writes small letters, the child capitals ---- */

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

static const char parent_text[] = "abcd\nefghi\njkl\nmnopq\n12345\nrstuvwxyz0123456789\n";
static const char child_text[] = "CHILD\n";

static void run_child(weir_stream *s, enum child_action action)
{
    char *const arguments[] = {"true", NULL};
    if (action == WRITE_CLOSE || action == WRITE_EXIT || action == WRITE_EXEC)
        weir_putrec(s, child_text, sizeof child_text - 2);
    switch (action) {
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
    switch (c->fork_call) {
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
        run_child(s, c->child);
    return child;
}

/* Runs in the process of a case. */
static void run_parent(int fd, const struct one_case *c)
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
            bool aborted = c->child == ABORT && c->fork_call <= CLONE;
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

/* ---- the expected bytes ---- */

struct expected {
    char text[400];
    size_t least; /* bytes that must be written even if the parent is killed */
};

/* Returns how many bytes a stream with the same options, in a process without children, has written after `steps`. */
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
    size_t written = written_after(c, c->step), accepted = accepted_after(c->step), used = 0;
    bool forked = c->fork_call <= CLONE;
    bool exits = c->child == EXIT || c->child == WRITE_CLOSE || c->child == WRITE_EXIT;
    bool writes = forked && (c->child == WRITE_CLOSE || c->child == WRITE_EXIT || c->child == WRITE_EXEC);
    bool keeps = c->options.on_fork == WEIR_FORK_KEEP && forked;
    bool writes_early = c->options.mode == WEIR_NONE || c->options.mode == WEIR_LINE;
    if (c->fork_call == FORK && c->options.on_fork == WEIR_FORK_FLUSH)
        written = accepted;
    memcpy(e->text, parent_text, used = written);
    if (keeps && (exits || (writes && writes_early))) {
        memcpy(e->text + used, parent_text + written, accepted - written);
        used += accepted - written;
    }
    if (writes && !(keeps && c->child == WRITE_EXEC && c->fork_call == CLONE && !writes_early)) {
        memcpy(e->text + used, child_text, sizeof child_text - 1);
        used += sizeof child_text - 1;
    }
    strcpy(e->text + used, parent_text + written);
    size_t lost = sizeof parent_text - 1 - written_after(c, STEPS);
    e->least = strlen(e->text) - (c->parent == BY_ABORT || c->parent == BY_UNDERSCORE_EXIT ? lost : 0);
}

static int open_sink(enum sink sink, int *reader)
{
    char path[] = "/tmp/weir-fork-XXXXXX";
    int ends[2];
    if (sink == PIPE) {
        if (pipe2(ends, O_CLOEXEC) != 0)
            abort();
        *reader = ends[0];
        return ends[1];
    }
    int fd = mkstemp(path);
    *reader = open(path, O_RDONLY | O_CLOEXEC);
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
    int reader, status, fd = open_sink(c->sink, &reader);
    pid_t parent = fork();
    if (parent == 0)
        run_parent(fd, c);
    close(fd);
    waitpid(parent, &status, 0);
    ssize_t got = read(reader, is, sizeof is - 1), all = got;
    while (c->sink == PIPE && got > 0 && (got = read(reader, is + all, sizeof is - 1 - (size_t)all)) > 0)
        all += got;
    is[all < 0 ? 0 : all] = '\0';
    close(reader);
    bool ok = all >= (ssize_t)e.least && strncmp(is, e.text, (size_t)all) == 0;
    bool ended = c->parent == BY_ABORT ? WIFSIGNALED(status) : status == 0;
    check(ok && ended,
          "%s, child %s, parent %s, step %d, sink %d, mode %d, on_fork %d: status %x\n  is:  %s\n  not: %s",
          fork_names[c->fork_call], child_names[c->child], parent_names[c->parent], c->step, (int)c->sink,
          (int)c->options.mode, (int)c->options.on_fork, (unsigned)status, is, e.text);
}

static bool is_possible(const struct one_case *c)
{
    if (c->fork_call == SPAWN)
        return c->child == EXEC;
    if (c->fork_call == VFORK)
        return c->child == JUST_EXIT || c->child == EXEC || c->child == EXEC_FAILS;
    return true;
}

static void every_step(enum fork_call fork_call, enum weir_on_fork on_fork, uint64_t rounds)
{
    static const char *const kinds[] = {"empty", "flush", "keep"};
    check_begin("%s at every step, %s", fork_names[fork_call], kinds[on_fork]);
    struct random r = random_from((uint64_t)fork_call * 10 + on_fork);
    for (uint64_t round = 0; round < rounds; round++)
        for (int child = 0; child < CHILD_ACTIONS; child++)
            for (int at = 0; at <= STEPS; at++) {
                struct one_case c = {.fork_call = fork_call, .child = (enum child_action)child, .step = at};
                c.parent = (enum parent_end)random_below(&r, PARENT_ENDS);
                c.sink = (enum sink)random_below(&r, SINKS);
                c.options.mode = (enum weir_mode)(1 + random_below(&r, 4));
                c.options.flags = random_below(&r, 2) ? WEIR_THREADS : 0;
                c.options.on_fork = on_fork;
                if (is_possible(&c))
                    run_case(&c);
            }
}

/* ---- a parent with threads and the timer ---- */

static weir_stream *busy;
static _Atomic bool stop;

static void *write_lines(void *count)
{
    for (uint64_t i = 0; !stop; i++, ++*(uint64_t *)count)
        if (weir_printf(busy, "p%llu\n", (unsigned long long)i) < 0)
            break;
    return NULL;
}

static void fork_beside_thread(enum weir_on_fork on_fork, enum weir_mode mode)
{
    check_begin("children of a process with threads and a timer, on_fork %d, mode %d", (int)on_fork, (int)mode);
    if (CHECK_SANITIZED) {
        check_skip("the sanitizer's own threads do not survive fork");
        return;
    }
    enum { CHILDREN = 150 };
    int reader, fd = open_sink(APPENDED_FILE, &reader), failed = 0;
    struct weir_options options = {
        .mode = mode, .on_fork = on_fork, .stale_ms = 1, .flags = WEIR_THREADS, .buffer_bytes = 500};
    check(weir_fdopen(&busy, fd, &options) == 0, "fdopen");
    pthread_t thread;
    uint64_t count = 0;
    stop = false;
    pthread_create(&thread, NULL, write_lines, &count);
    for (int i = 0; i < CHILDREN; i++) {
        pid_t child = i % 2 ? fork() : (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
        if (child == 0) {
            weir_printf(busy, "c%d\n", i);
            if (i % 4 < 2)
                sleep_seconds(0.003); /* so that the child's own timer expires */
            _exit(weir_close(busy) != 0);
        }
        int status = -1;
        waitpid(child, &status, 0);
        failed += status != 0;
    }
    stop = true;
    pthread_join(thread, NULL);
    check(weir_close(busy) == 0 && failed == 0, "%d children failed", failed);
    FILE *f = fdopen(reader, "r");
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
        check(children[i] == 1, "child %d has %llu lines", i, (unsigned long long)children[i]);
}

int main(int count, char **arguments)
{
    uint64_t rounds = check_option(count, arguments, "rounds", 2);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    for (int fork_call = 0; fork_call < FORK_CALLS; fork_call++)
        for (int on_fork = WEIR_FORK_EMPTY; on_fork <= WEIR_FORK_KEEP; on_fork++)
            every_step((enum fork_call)fork_call, (enum weir_on_fork)on_fork, rounds);
    fork_beside_thread(WEIR_FORK_EMPTY, WEIR_RECORD);
    fork_beside_thread(WEIR_FORK_FLUSH, WEIR_RECORD);
    fork_beside_thread(WEIR_FORK_EMPTY, WEIR_LINE);
    return check_finish("fork_exec");
}
