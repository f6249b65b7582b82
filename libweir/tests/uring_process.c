/* uring_process.c: WEIR_URING with a write in flight when the program forks, exits, calls execve(2), loses the thread
 * or the descriptor of the ring, or may no longer use io_uring. */
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

/* A stream over a full pipe, with one buffer in flight and half a buffer pending. */
struct blocked {
    weir_stream *s;
    int reader;
    struct model m; /* the bytes that the pipe must deliver */
};

static void put(struct blocked *t, int bytes, char first)
{
    for (int i = 0; i < bytes; i++) {
        char c = (char)(first + i % 26);
        check(weir_putc(t->s, c) == c, "putc");
        model_write(&t->m, &c, 1);
    }
}

static int full_pipe(struct blocked *t)
{
    int ends[2];
    char full[PIPE];
    check(pipe(ends) == 0 && fcntl(ends[1], F_SETPIPE_SZ, PIPE) == PIPE, "pipe");
    memset(full, '-', sizeof full);
    check(write(ends[1], full, PIPE) == PIPE, "the pipe can be filled");
    model_init(&t->m, true);
    model_write(&t->m, full, PIPE);
    t->reader = ends[0];
    return ends[1];
}

static void block_stream(struct blocked *t, int fd)
{
    struct weir_options options = {.flags = WEIR_URING, .buffer_bytes = BUFFER};
    struct weir_stats stats;
    check(weir_fdopen(&t->s, fd, &options) == 0, "fdopen");
    put(t, BUFFER + BUFFER / 2, 'a');
    weir_get_stats(t->s, &stats);
    check(stats.pending_bytes == BUFFER + BUFFER / 2 && weir__pending(t->s) == BUFFER / 2, "a buffer is in flight");
}

/* Reads until the last writer has closed the pipe. */
static void read_all(int reader, struct model *got)
{
    char piece[1000];
    ssize_t bytes;
    model_init(got, true);
    while ((bytes = read(reader, piece, sizeof piece)) > 0)
        model_write(got, piece, (size_t)bytes);
    close(reader);
}

static void compare(struct model *got, struct model *m)
{
    check(got->size == m->size && memcmp(got->bytes, m->bytes, m->size) == 0,
          "%zu bytes of %zu, or different bytes", got->size, m->size);
    model_free(got);
    model_free(m);
}

static void *close_in_thread(void *argument)
{
    struct blocked *t = argument;
    return (void *)(intptr_t)weir_close(t->s);
}

static bool has_ring(int pid)
{
    char command[100];
    snprintf(command, sizeof command, "ls -l /proc/%d/fd | grep -q io_uring", pid);
    return system(command) == 0;
}

/* The child's own bytes are written once, after those already in the pipe; pending bytes are the parent's only. */
static void forks(bool by_clone)
{
    struct blocked t;
    block_stream(&t, full_pipe(&t));
    check(has_ring(getpid()), "there is a ring");
    int go[2], status;
    check(pipe(go) == 0, "pipe");
    pid_t child = by_clone ? (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : fork();
    if (child == 0) {
        char byte;
        close(go[1]);
        bool ring = has_ring(getpid()) && !by_clone;
        if (read(go[0], &byte, 1) != 0 || ring) /* until the parent has written all its bytes */
            _exit(3);
        for (int i = 0; i < 3 * BUFFER; i++)
            weir_putc(t.s, 'C');
        struct weir_stats stats;
        weir_get_stats(t.s, &stats);
        _exit(stats.written_bytes + stats.pending_bytes != 3 * BUFFER || weir_close(t.s) < 0);
    }
    put(&t, BUFFER / 4, 'A'); /* into the second buffer, while the write is in flight */
    char piece[500];
    struct model got;
    model_init(&got, true);
    pthread_t thread;
    void *result;
    pthread_create(&thread, NULL, close_in_thread, &t);
    while (got.size < t.m.size) {
        ssize_t bytes = read(t.reader, piece, sizeof piece);
        if (!check(bytes > 0, "read returned %zd", bytes))
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
    check(all, "%zu bytes of the child, or different bytes", got.size);
    model_free(&got);
}

/* Blocks the stream and ends it in a child process, and checks the bytes that the pipe delivers. */
static void in_child(void (*get)(struct blocked *t, int fd), void (*end)(struct blocked *t))
{
    struct blocked t;
    struct model got;
    int status = -1, fd = full_pipe(&t), blocked[2];
    char byte;
    check(pipe2(blocked, O_CLOEXEC) == 0, "pipe");
    pid_t child = fork();
    if (child == 0) {
        close(t.reader);
        get(&t, fd);
        if (check_wrong() || write(blocked[1], "b", 1) != 1)
            _exit(8);
        end(&t);
        _exit(9);
    }
    close(fd);
    close(blocked[1]);
    check(read(blocked[0], &byte, 1) == 1, "the child's stream is blocked");
    close(blocked[0]);
    sleep_seconds(0.1); /* lets the child reach the call that waits */
    read_all(t.reader, &got);
    check(waitpid(child, &status, 0) == child, "the child has ended");
    check(status == 0, "the child ended with %x", (unsigned)status);
    for (int i = 0; i < BUFFER + BUFFER / 2; i++)
        model_write(&t.m, &(char){(char)('a' + i % 26)}, 1);
    compare(&got, &t.m);
}

static void by_close(struct blocked *t) { _exit(weir_close(t->s) != 0); }

static void by_exit(struct blocked *t)
{
    (void)t;
    exit(0);
}

static void by_exec(struct blocked *t)
{
    (void)t;
    execl("/bin/true", "true", (char *)NULL);
}

static struct blocked *for_thread;
static int fd_for_thread;
static void *block_stream_in_thread(void *unused)
{
    (void)unused;
    block_stream(for_thread, fd_for_thread);
    return NULL;
}

/* Submits the write in a thread that ends: the kernel then cancels the write. */
static void block_stream_by_thread(struct blocked *t, int fd)
{
    pthread_t thread;
    for_thread = t;
    fd_for_thread = fd;
    pthread_create(&thread, NULL, block_stream_in_thread, NULL);
    pthread_join(thread, NULL);
}

/* The program closes the ring's descriptor and reuses its number. */
static void by_closing_the_ring(struct blocked *t)
{
    int first = weir_fd(t->s) + 1, null = open("/dev/null", O_WRONLY);
    for (int fd = first; fd < first + 8; fd++)
        if (fd != null)
            dup2(null, fd);
    by_close(t);
}

/* A seccomp filter makes io_uring_enter(2) fail from now on. */
static void by_filter(struct blocked *t)
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

static void by_vfork(struct blocked *t)
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
        check_begin("all tests");
        check_skip("this process may not use io_uring, or the kernel has none");
        return check_finish("uring_process");
    }
    weir__ring_free(&ring);
#define TEST(call) check_begin(#call); call
    TEST(forks(false));
    TEST(forks(true));
    TEST(in_child(block_stream, by_close));
    TEST(in_child(block_stream, by_exit));
    TEST(in_child(block_stream, by_exec));
    TEST(in_child(block_stream, by_vfork));
    TEST(in_child(block_stream_by_thread, by_close));
    TEST(in_child(block_stream_by_thread, by_exit));
    TEST(in_child(block_stream, by_closing_the_ring));
    TEST(in_child(block_stream, by_filter));
    return check_finish("uring_process");
}
