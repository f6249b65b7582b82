/* uring_process.c: WEIR_URING with a write in flight when the program forks, ends, is replaced by another,
 * loses the thread or the descriptors that the write came by, or may not use io_uring any more. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../src/uring_ring.h"
#include "support/model.h"

enum { BUFFER = 8192, PIPE = 4096 };

/* A stream over a pipe that is full, with a buffer in flight and half a one waiting. */
struct stuck {
    weir_stream *s;
    int reader;
    struct model m; /* what is to come out of the pipe */
};

static void put(struct stuck *t, int bytes, char first)
{
    for (int i = 0; i < bytes; i++) {
        char c = (char)(first + i % 26);
        check(weir_putc(t->s, c) == c, "putc");
        model_write(&t->m, &c, 1);
    }
}

static int full_pipe(struct stuck *t)
{
    int ends[2];
    char full[PIPE];
    check(pipe(ends) == 0 && fcntl(ends[1], F_SETPIPE_SZ, PIPE) == PIPE, "pipe");
    memset(full, '-', sizeof full);
    check(write(ends[1], full, PIPE) == PIPE, "it is full");
    model_make(&t->m, true);
    model_write(&t->m, full, PIPE);
    t->reader = ends[0];
    return ends[1];
}

static void get_stuck(struct stuck *t, int fd)
{
    struct weir_options options = {.flags = WEIR_URING, .buffer_bytes = BUFFER};
    struct weir_stats stats;
    check(weir_fdopen(&t->s, fd, &options) == 0, "fdopen");
    put(t, BUFFER + BUFFER / 2, 'a');
    weir_get_stats(t->s, &stats);
    check(stats.pending_bytes == BUFFER + BUFFER / 2 && weir__pending(t->s) == BUFFER / 2, "a buffer is in flight");
}

/* Everything that comes until the last writer is gone. */
static void read_all(int reader, struct model *got)
{
    char piece[1000];
    ssize_t bytes;
    model_make(got, true);
    while ((bytes = read(reader, piece, sizeof piece)) > 0)
        model_write(got, piece, (size_t)bytes);
    close(reader);
}

static void compare(struct model *got, struct model *m)
{
    check(got->size == m->size && memcmp(got->bytes, m->bytes, m->size) == 0, "%zu bytes of %zu, or others", got->size,
          m->size);
    model_free(got);
    model_free(m);
}

static void *close_in_thread(void *stuck)
{
    struct stuck *t = stuck;
    return (void *)(intptr_t)weir_close(t->s);
}

static bool has_ring(int pid)
{
    char command[100];
    snprintf(command, sizeof command, "ls -l /proc/%d/fd | grep -q io_uring", pid);
    return system(command) == 0;
}

/* What the child writes goes out once, behind what it finds in the pipe; the rest is its parent's. */
static void forks(bool by_clone)
{
    struct stuck t;
    get_stuck(&t, full_pipe(&t));
    check(has_ring(getpid()), "there is a ring");
    int go[2], status;
    check(pipe(go) == 0, "pipe");
    pid_t child = by_clone ? (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : fork();
    if (child == 0) {
        char byte;
        close(go[1]);
        bool ring = has_ring(getpid()) && !by_clone;
        if (read(go[0], &byte, 1) != 0 || ring) /* the parent's bytes are all there */
            _exit(3);
        for (int i = 0; i < 3 * BUFFER; i++)
            weir_putc(t.s, 'C');
        struct weir_stats stats;
        weir_get_stats(t.s, &stats);
        _exit(stats.written_bytes + stats.pending_bytes != 3 * BUFFER || weir_close(t.s) < 0);
    }
    put(&t, BUFFER / 4, 'A'); /* into the buffer, beside the write in flight */
    char piece[500];
    struct model got;
    model_make(&got, true);
    pthread_t thread;
    void *result;
    pthread_create(&thread, NULL, close_in_thread, &t);
    while (got.size < t.m.size) {
        ssize_t bytes = read(t.reader, piece, sizeof piece);
        if (!check(bytes > 0, "read %zd", bytes))
            break;
        model_write(&got, piece, (size_t)bytes);
    }
    pthread_join(thread, &result);
    check(result == NULL, "close returned %d", (int)(intptr_t)result);
    close(go[0]);
    close(go[1]);
    compare(&got, &t.m);
    read_all(t.reader, &got);
    check(waitpid(child, &status, 0) == child && status == 0, "the child ended with %x", (unsigned)status);
    bool all = got.size == 3 * BUFFER;
    for (size_t i = 0; i < got.size; i++)
        all = all && got.bytes[i] == 'C';
    check(all, "the child's %zu bytes", got.size);
    model_free(&got);
}

/* Does that in another process, and reads what comes of it. */
static void apart(void (*get)(struct stuck *t, int fd), void (*end)(struct stuck *t))
{
    struct stuck t;
    struct model got;
    int status, fd = full_pipe(&t);
    pid_t child = fork();
    if (child == 0) {
        close(t.reader);
        get(&t, fd);
        if (check_wrong())
            _exit(8);
        end(&t);
        _exit(9);
    }
    close(fd);
    sleep_seconds(0.1); /* by now it waits at its end */
    read_all(t.reader, &got);
    check(waitpid(child, &status, 0) == child && status == 0, "it ended with %x", (unsigned)status);
    for (int i = 0; i < BUFFER + BUFFER / 2; i++)
        model_write(&t.m, &(char){(char)('a' + i % 26)}, 1);
    compare(&got, &t.m);
}

static void by_close(struct stuck *t) { _exit(weir_close(t->s) != 0); }

static void by_exit(struct stuck *t)
{
    (void)t;
    exit(0);
}

static void by_exec(struct stuck *t)
{
    (void)t;
    execl("/bin/true", "true", (char *)NULL);
}

static struct stuck *for_thread;
static int fd_for_thread;
static void *get_stuck_in_thread(void *unused)
{
    (void)unused;
    get_stuck(for_thread, fd_for_thread);
    return NULL;
}

/* The kernel cancels what a thread had in flight when it ends. */
static void get_stuck_by_thread(struct stuck *t, int fd)
{
    pthread_t thread;
    for_thread = t;
    fd_for_thread = fd;
    pthread_create(&thread, NULL, get_stuck_in_thread, NULL);
    pthread_join(thread, NULL);
}

/* The program closes descriptors that are not its own, and opens others. */
static void by_closing_the_ring(struct stuck *t)
{
    int first = weir_fd(t->s) + 1, null = open("/dev/null", O_WRONLY);
    for (int fd = first; fd < first + 8; fd++)
        if (fd != null)
            dup2(null, fd);
    by_close(t);
}

/* A filter for system calls comes between: io_uring_enter(2) and _setup(2) fail from now on. */
static void by_filter(struct stuck *t)
{
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_enter, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof steps / sizeof *steps, steps};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
        _exit(7);
    by_close(t);
}

static void by_vfork(struct stuck *t)
{
    if (vfork() == 0) {
        execl("/bin/true", "true", (char *)NULL);
        _exit(1);
    }
    by_close(t);
}

int main(void)
{
    struct weir__ring ring;
    if (weir__ring_init(&ring) < 0) {
        check_begin("all");
        check_skip("this process may not use io_uring, or the kernel has none");
        return check_finish("uring_process");
    }
    weir__ring_free(&ring);
#define TEST(call) check_begin(#call); call
    TEST(forks(false));
    TEST(forks(true));
    TEST(apart(get_stuck, by_close));
    TEST(apart(get_stuck, by_exit));
    TEST(apart(get_stuck, by_exec));
    TEST(apart(get_stuck, by_vfork));
    TEST(apart(get_stuck_by_thread, by_close));
    TEST(apart(get_stuck_by_thread, by_exit));
    TEST(apart(get_stuck, by_closing_the_ring));
    TEST(apart(get_stuck, by_filter));
    return check_finish("uring_process");
}
