/* file_lock.c: WEIR_LOCK_FILE with a forked child, with a second descriptor of the same open file description, and when
 * a write fails in the middle of a line; and what O_APPEND alone does not prevent. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../src/private.h"
#include "support/check.h"
#include "support/fake_kernel.h"

static struct weir__kernel real;

static bool text_is(int fd, const char *expected)
{
    static char is[65536];
    ssize_t got = pread(fd, is, sizeof is - 1, 0);
    is[got > 0 ? got : 0] = '\0';
    return check(strcmp(is, expected) == 0, "the file has \"%s\", not \"%s\"", is, expected);
}

/* Opens the file another time, as an unrelated process does. */
static int open_again(int fd)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return open(path, O_RDWR | O_APPEND | O_CLOEXEC);
}

static bool is_locked(int fd)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int other = open_again(fd);
    bool locked = fcntl(other, F_OFD_SETLK, &whole) != 0;
    close(other);
    return locked;
}

/* ---- two writers with one open file description ---- */

enum writer { FORK, CLONE, FORK_KEEP, DUP, WRITERS };
static const char *const writer_names[] = {"a child of fork(2)", "a child of clone(2)", "a child with WEIR_FORK_KEEP",
                                           "a stream over dup(2)"};

static weir_stream *stream, *second;
static int file_fd;
static _Atomic int *half_written; /* shared with the child */
static bool was_locked;

/* Writes the first half, gives the other writer time for its line, and writes the rest. */
static ssize_t write_in_halves(int fd, const void *from, size_t bytes)
{
    if (bytes != 12 || *half_written)
        return real.write(fd, from, bytes);
    ssize_t first = real.write(fd, from, bytes / 2);
    *half_written = 1;
    sleep_seconds(0.2);
    was_locked = is_locked(file_fd);
    return first + real.write(fd, (const char *)from + first, bytes - (size_t)first);
}

static void *write_other(void *s)
{
    for (double end = seconds_now() + 20; !*half_written && seconds_now() < end;)
        sleep_seconds(0.001);
    weir_put_str(s, "OTHER\n");
    weir_flush(s);
    return NULL;
}

static pid_t start_child(enum writer writer)
{
    pid_t child = writer == CLONE ? (pid_t)syscall(SYS_clone, (long)SIGCHLD, 0L, 0L, 0L, 0L) : fork();
    if (child == 0) {
        write_other(stream);
        _exit(0);
    }
    return child;
}

static void two_writers(enum writer writer, int oflags)
{
    check_begin("WEIR_LOCK_FILE, %s, %s", writer_names[writer], oflags & O_APPEND ? "O_APPEND" : "no O_APPEND");
    struct weir_options options = {.mode = WEIR_FULL, .flags = WEIR_LOCK_FILE};
    options.on_fork = writer == FORK_KEEP ? WEIR_FORK_KEEP : WEIR_FORK_EMPTY;
    file_fd = nameless_file();
    fcntl(file_fd, F_SETFL, oflags);
    *half_written = 0;
    weir__kernel.write = write_in_halves;
    check(weir_fdopen(&stream, dup(file_fd), &options) == 0 && weir_fdopen(&second, dup(file_fd), &options) == 0, "fdopen");
    check(weir_put_str(stream, "before\n") == 7 && weir_flush(stream) == 0, "the first line");
    pthread_t thread;
    pid_t child = 0;
    int status = 0;
    if (writer == DUP)
        pthread_create(&thread, NULL, write_other, second);
    else
        check((child = start_child(writer)) > 0, "fork");
    check(weir_put_str(stream, "hello world\n") == 12 && weir_flush(stream) == 0, "flush");
    if (writer == DUP)
        pthread_join(thread, NULL);
    else
        waitpid(child, &status, 0);
    check(status == 0 && was_locked, "the file was unlocked during the write");
    check(weir_close(stream) == 0 && weir_close(second) == 0, "close");
    weir__kernel.write = real.write;
    text_is(file_fd, "before\nhello world\nOTHER\n");
    check(!is_locked(file_fd), "the file is still locked");
    close(file_fd);
}

/* ---- a child that has closed its descriptors ---- */

/* The number of the stream's second descriptor belongs to another file of the child. */
static int write_after_reuse(void)
{
    int lock_fd = weir__config(stream)->lock_fd, other = nameless_file();
    struct stat was, is;
    if (lock_fd < 0 || dup2(other, lock_fd) != lock_fd)
        return 1;
    weir_put_str(stream, "child\n");
    if (weir_flush(stream) != 0)
        return 2;
    return fstat(lock_fd, &is) == 0 && fstat(other, &was) == 0 && is.st_ino == was.st_ino ? 0 : 3;
}

static void a_reused_number_stays_open(void)
{
    struct weir_options options = {.mode = WEIR_FULL, .flags = WEIR_LOCK_FILE};
    int status = -1;
    check_begin("a child of clone(2) uses the number of the lock's descriptor for a file of its own");
    file_fd = nameless_file();
    check(weir_fdopen(&stream, dup(file_fd), &options) == 0, "fdopen");
    check(weir_put_str(stream, "parent\n") == 7 && weir_flush(stream) == 0, "the first line");
    pid_t child = (pid_t)syscall(SYS_clone, (long)SIGCHLD, 0L, 0L, 0L, 0L);
    if (child == 0)
        _exit(write_after_reuse());
    waitpid(child, &status, 0);
    check(status == 0, "the child ended with %x", (unsigned)status);
    check(weir_close(stream) == 0, "close");
    text_is(file_fd, "parent\nchild\n");
    close(file_fd);
}

/* ---- a write that fails in the middle of a line ---- */

static const char *const mode_names[] = {"auto", "none", "line", "full", "record"};

static bool fake_is(const struct fake_file *f, const char *expected)
{
    bool same = f->size == strlen(expected) && memcmp(f->bytes, expected, f->size) == 0;
    return check(same, "the file has \"%.*s\", not \"%s\"", (int)f->size, (char *)f->bytes, expected);
}

static void append_other(struct fake_file *f)
{
    int fd = fake_open(f, O_WRONLY | O_APPEND);
    f->space = 0;
    check(weir__kernel.write(fd, "OTHER\n", 6) == 6, "the other writer");
    weir__kernel.close(fd);
}

static void put(weir_stream *s, const char *text, bool parts)
{
    size_t half = strlen(text) / 2;
    struct iovec iov[3] = {{(void *)(uintptr_t)text, half}, {NULL, 0}, {(void *)(uintptr_t)(text + half), strlen(text) - half}};
    if (parts)
        weir_writev(s, iov, 3);
    else
        weir_printf(s, "%s", text);
}

/* The disk has space for `space` bytes. */
static void disk_full(enum weir_mode mode, int oflags, bool parts, const char *text, size_t space, const char *kept)
{
    struct fake_file f;
    struct weir_options options = {.mode = mode, .flags = WEIR_LOCK_FILE, .buffer_bytes = parts ? 4 : 100};
    char expected[200];
    fake_install();
    fake_file_make(&f, FAKE_FILE);
    int fd = fake_open(&f, oflags);
    check(weir_fdopen(&stream, fd, &options) == 0, "fdopen");
    f.space = space;
    put(stream, text, parts);
    struct weir_stats stats;
    check(weir_flush(stream) == -ENOSPC && fake_is(&f, kept), "flush on the full disk");
    weir_get_stats(stream, &stats);
    check(stats.written_bytes == f.size, "%zu bytes written, by weir_get_stats %llu", f.size, (unsigned long long)stats.written_bytes);
    size_t accepted = f.size + stats.pending_bytes;
    append_other(&f);
    weir_clear(stream);
    check(weir_flush(stream) == 0 && !f.locked, "flush after weir_clear");
    snprintf(expected, sizeof expected, "%sOTHER\n%.*s", kept, (int)(accepted - strlen(kept)), text + strlen(kept));
    fake_is(&f, expected);
    check(weir_close(stream) == 0, "close");
    fake_file_free(&f);
    fake_remove();
}

static void disk_full_in_every_mode(void)
{
    static const int oflags[] = {O_WRONLY, O_WRONLY | O_APPEND};
    for (int mode = WEIR_NONE; mode <= WEIR_RECORD; mode++)
        for (int i = 0; i < 2; i++) {
            check_begin("WEIR_LOCK_FILE, a full disk in the middle of a line, %s%s", mode_names[mode], i ? ", O_APPEND" : "");
            for (int parts = 0; parts < 2; parts++) {
                disk_full((enum weir_mode)mode, oflags[i], parts, "hello world\n", 5, "");
                disk_full((enum weir_mode)mode, oflags[i], parts, "one\ntwo\nthree\n", 10, "one\ntwo\n");
                disk_full((enum weir_mode)mode, oflags[i], parts, "one\ntwo\nthree\n", 8, "one\ntwo\n");
            }
        }
}

/* ---- and the process is killed meanwhile ---- */

static int kill_at; /* 0: before the removal, 1: after it */

static int ftruncate_and_die(int fd, off_t bytes)
{
    if (kill_at == 1)
        real.ftruncate(fd, bytes);
    kill(getpid(), SIGKILL);
    return -1;
}

static void write_too_much(const char *sink, const char *spill)
{
    struct weir_options options = {
        .mode = WEIR_FULL, .durability = WEIR_KILL, .flags = WEIR_LOCK_FILE, .spill = spill};
    struct rlimit limit = {20, 20};
    signal(SIGXFSZ, SIG_IGN);
    if (weir_open(&stream, sink, O_WRONLY | O_APPEND, &options) < 0)
        _exit(1);
    weir_put_str(stream, "one\n");
    weir_flush(stream);
    weir__kernel.ftruncate = ftruncate_and_die;
    weir_put_str(stream, "two\nthree\na longer line\n");
    setrlimit(RLIMIT_FSIZE, &limit);
    weir_flush(stream); /* writes up to the limit, then EFBIG */
    _exit(2);
}

static void killed_while_it_takes_back(void)
{
    char directory[] = "/dev/shm/weir-lock-XXXXXX", spill[64], sink[64];
    for (kill_at = 0; kill_at < 2; kill_at++) {
        check_begin("a kill %s the removal of half a line", kill_at ? "after" : "before");
        strcpy(directory + strlen(directory) - 6, "XXXXXX");
        if (!mkdtemp(directory)) {
            check_skip("no /dev/shm");
            continue;
        }
        snprintf(spill, sizeof spill, "%s/spill", directory);
        snprintf(sink, sizeof sink, "%s/sink", directory);
        int fd = open(sink, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600), status = -1;
        pid_t child = fork();
        if (child == 0)
            write_too_much(sink, spill);
        waitpid(child, &status, 0);
        check(WIFSIGNALED(status), "the child ended with %x", (unsigned)status);
        struct weir_recovered found;
        int result = weir_recover(spill, -1, &found);
        check(result == 0, "weir_recover returned %d", result);
        text_is(fd, "one\ntwo\nthree\na longer line\n");
        close(fd);
        unlink(sink);
        check(rmdir(directory) == 0, "a file is left");
    }
}

/* ---- a short write ---- */

static struct fake_file *appended_to;
static struct weir__kernel faked;
static bool interrupted, locked_between;

/* Between the two writes of a line another writer appends, unless the file is locked. */
static ssize_t write_short(int fd, const void *from, size_t bytes)
{
    if (interrupted || bytes != 12)
        return faked.write(fd, from, bytes);
    interrupted = true;
    ssize_t half = faked.write(fd, from, 5);
    locked_between = appended_to->locked;
    if (!locked_between)
        append_other(appended_to);
    return half;
}

static void short_write(unsigned flags, const char *expected)
{
    check_begin("the kernel accepts half a line on O_APPEND, %s", flags ? "with WEIR_LOCK_FILE" : "without a lock");
    struct fake_file f;
    struct weir_options options = {.mode = WEIR_LINE, .flags = flags};
    fake_install();
    faked = weir__kernel;
    fake_file_make(&f, FAKE_FILE);
    int fd = fake_open(&f, O_WRONLY | O_APPEND);
    check(weir_fdopen(&stream, fd, &options) == 0, "fdopen");
    appended_to = &f;
    interrupted = false;
    weir__kernel.write = write_short;
    check(weir_put_str(stream, "hello world\n") == 12, "put_str");
    check(interrupted && locked_between == (flags != 0), "locked between the two writes: %d", locked_between);
    weir__kernel.write = faked.write;
    fake_is(&f, expected);
    check(weir_close(stream) == 0, "close");
    fake_file_free(&f);
    fake_remove();
}

int main(void)
{
    real = weir__kernel;
    alarm(120); /* ends the test if a lock is never released */
    half_written = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int writer = 0; writer < WRITERS; writer++) {
        two_writers((enum writer)writer, 0);
        two_writers((enum writer)writer, O_APPEND);
    }
    a_reused_number_stays_open();
    disk_full_in_every_mode();
    killed_while_it_takes_back();
    short_write(0, "helloOTHER\n world\n");
    short_write(WEIR_LOCK_FILE, "hello world\n");
    return check_finish("file_lock");
}
