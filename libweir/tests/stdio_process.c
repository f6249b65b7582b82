/* stdio_process.c: fork, exec, exit and popen with weir/stdio.h. */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>

#include <weir/stdio.h>

#include "stdio/check.h"

static int run(void (*job)(const char *path), const char *path)
{
    int status, pid = fork();
    if (pid == 0) {
        job(path);
        _exit(99); /* not reached: each job exits */
    }
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static void wait_for_child(void)
{
    int status;
    wait(&status);
}

static void redirect_stdout(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(fd, 1);
    close(fd);
}

/* With the C library's stdio "one" is written twice, because both processes have the pending bytes when they exit. */
static void job_fork(const char *path)
{
    redirect_stdout(path);
    printf("one\n");
    if (fork() == 0) {
        printf("two\n");
        exit(0);
    }
    wait_for_child();
    printf("three\n");
    exit(0);
}

static void job_fork_file(const char *path)
{
    FILE *f = fopen(path, "w"), *both = fopen(in_directory("both"), "w+");
    fprintf(f, "one\n");
    fprintf(both, "one\n");
    if (fork() == 0) {
        fprintf(f, "two\n");
        fprintf(both, "two\n");
        exit(fclose(f) || fclose(both));
    }
    wait_for_child();
    fprintf(f, "three\n");
    fprintf(both, "three\n");
    exit(fclose(f) || fclose(both));
}

static void test_fork_writing(void)
{
    begin("fork with pending output");
    const char *path = in_directory("fork");
    expect_equal(run(job_fork, path), 0);
    expect_text(file_text(path), "two\none\nthree\n");
    expect_equal(run(job_fork_file, path), 0);
    expect_text(file_text(path), "two\none\nthree\n");
    expect_text(file_text(in_directory("both")), "two\none\nthree\n");
}

/* The child has the read-ahead bytes, and its exit does not make the parent read them again. */
static void job_fork_reading(const char *path)
{
    FILE *f = fopen(path, "r");
    char line[32];
    int lines = 0;
    while (fgets(line, sizeof line, f)) {
        lines++;
        if (fork() == 0) {
            int rest = 0;
            while (fgets(line, sizeof line, f))
                rest++;
            exit(rest);
        }
        int status;
        wait(&status);
        if (WEXITSTATUS(status) != 5 - lines)
            _exit(10 + lines);
    }
    _exit(lines);
}

static void job_fork_stdin(const char *path)
{
    (void)path;
    int c = getchar();
    if (fork() == 0)
        _exit(getchar());
    int status;
    wait(&status);
    _exit(c == 'a' && WEXITSTATUS(status) == 'b' && getchar() == 'b' ? 0 : 1);
}

static void test_fork_reading(void)
{
    begin("fork with read-ahead input");
    const char *path = in_directory("reading");
    put_file(path, "1\n2\n3\n4\n5\n");
    expect_equal(run(job_fork_reading, path), 5);
    int ends[2], before = dup(0);
    expect_equal(pipe(ends), 0);
    expect_equal(write(ends[1], "abc", 3), 3);
    dup2(ends[0], 0);
    expect_equal(run(job_fork_stdin, path), 0);
    dup2(before, 0);
    close(ends[0]);
    close(ends[1]);
    close(before);
}

static void job_fork_memory(const char *path)
{
    char *memory;
    size_t bytes;
    (void)path;
    FILE *f = open_memstream(&memory, &bytes);
    fputs("before", f);
    if (fork() == 0) {
        fputs(" child", f);
        fclose(f);
        _exit(strcmp(memory, "before child"));
    }
    int status;
    wait(&status);
    fputs(" parent", f);
    fclose(f);
    _exit(WEXITSTATUS(status) || strcmp(memory, "before parent"));
}

static void test_fork_memory(void)
{
    begin("fork with open_memstream");
    expect_equal(run(job_fork_memory, ""), 0);
}

static void job_exit(const char *path)
{
    redirect_stdout(path);
    FILE *f = fopen(in_directory("exit"), "w");
    fputs("never closed", f);
    printf("no newline");
    exit(7);
}

static void print_at_exit(void) { printf("later\n"); }

static void job_atexit(const char *path)
{
    redirect_stdout(path);
    atexit(print_at_exit);
    printf("first\n");
    exit(0);
}

static void job_exec(const char *path)
{
    redirect_stdout(path);
    printf("before exec\n");
    execl("/bin/sh", "sh", "-c", "echo after exec", (char *)NULL);
    _exit(1);
}

static void job_quick_exit(const char *path)
{
    redirect_stdout(path);
    printf("lost\n");
    _exit(3);
}

static void test_exit(void)
{
    begin("exit, _exit, exec");
    const char *path = in_directory("out");
    expect_equal(run(job_exit, path), 7);
    expect_text(file_text(path), "no newline");
    expect_text(file_text(in_directory("exit")), "never closed");
    expect_equal(run(job_atexit, path), 0);
    expect_text(file_text(path), "first\nlater\n");
    expect_equal(run(job_quick_exit, path), 3);
    expect_text(file_text(path), "");
    expect_equal(run(job_exec, path), 0);
    expect_text(file_text(path), "before exec\nafter exec\n");
}

static void *read_blocked(void *ready)
{
    atomic_int *flag = ready;
    *flag = 1;
    getchar();
    return NULL;
}

/* Neither fork nor exit waits for a thread that blocks in read(2). */
static void job_blocked_reader(const char *path)
{
    (void)path;
    int ends[2];
    pthread_t thread;
    atomic_int ready = 0;
    struct timespec start, end;
    if (pipe(ends) != 0 || dup2(ends[0], 0) != 0)
        _exit(1);
    pthread_create(&thread, NULL, read_blocked, &ready);
    while (!ready)
        usleep(1000);
    usleep(20000);
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (int i = 0; i < 5; i++) {
        if (fork() == 0)
            _exit(0);
        wait_for_child();
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    int64_t ms = (end.tv_sec - start.tv_sec) * 1000 + (end.tv_nsec - start.tv_nsec) / 1000000;
    exit(ms < 900 ? 5 : 6);
}

static void test_blocked_reader(void)
{
    struct timespec start, end;
    begin("a thread that blocks in read(2)");
    clock_gettime(CLOCK_MONOTONIC, &start);
    expect_equal(run(job_blocked_reader, ""), 5);
    clock_gettime(CLOCK_MONOTONIC, &end);
    int64_t ms = (end.tv_sec - start.tv_sec) * 1000 + (end.tv_nsec - start.tv_nsec) / 1000000;
    expect(ms < (WITH_TSAN ? 1950 : 950)); /* ThreadSanitizer sleeps for a second at exit */
}

static void test_popen(void)
{
    begin("popen");
    char line[64];
    FILE *f = popen("echo one; echo two; exit 3", "r");
    expect(f != NULL);
    expect(fgets(line, sizeof line, f) == line);
    expect_text(line, "one\n");
    expect(fgets(line, sizeof line, f) == line);
    expect(fgets(line, sizeof line, f) == NULL);
    expect(feof(f));
    int status = pclose(f);
    expect(WIFEXITED(status) && WEXITSTATUS(status) == 3);
    const char *path = in_directory("popen");
    char command[200];
    snprintf(command, sizeof command, "sort > %s", path);
    f = popen(command, "w");
    fputs("b\nc\na\n", f);
    expect_equal(pclose(f), 0);
    expect_text(file_text(path), "a\nb\nc\n");
    f = popen("kill -9 $$", "re");
    status = pclose(f);
    expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    f = popen("no-such-command 2>/dev/null", "r");
    status = pclose(f);
    expect_equal(WEXITSTATUS(status), 127);
    static const char *const wrong[] = {"", "q", "rw", "r+", "a", "w+"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        errno = 0;
        FILE *none = popen("true", wrong[i]);
        if (strcmp(wrong[i], "rw") != 0) { /* the same as "r" */
            expect(none == NULL);
            expect_equal(errno, EINVAL);
        }
        if (none)
            pclose(none);
    }
    f = fopen("/dev/null", "r");
    errno = 0;
    expect_equal(pclose(f), -1);
    expect_equal(errno, EINVAL);
    fclose(f);
}

/* A second command must not inherit the pipe of the first; and popen works with the descriptors 0 and 1 closed. */
static void job_popen_closed(const char *path)
{
    close(0);
    close(1);
    FILE *first = popen("cat > /dev/null", "w"), *second = popen("cat > /dev/null", "w");
    if (!second || pclose(first) != 0)
        _exit(1);
    FILE *f = popen("echo closed", "r"), *to = fopen(path, "w");
    int c;
    while ((c = getc(f)) != EOF)
        putc(c, to);
    _exit(fclose(to) || pclose(f));
}

static void test_popen_pipes(void)
{
    begin("the pipes of several popens");
    const char *path = in_directory("pipes");
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    expect_equal(run(job_popen_closed, path), 0);
    clock_gettime(CLOCK_MONOTONIC, &end);
    expect(end.tv_sec - start.tv_sec < 10);
    expect_text(file_text(path), "closed\n");
    FILE *f = popen("echo x", "r");
    expect_equal(fclose(f), 0); /* waits for the command, as pclose does */
    expect_equal(waitpid(-1, NULL, WNOHANG), -1);
}

int main(void)
{
    make_directory();
    test_fork_writing();
    test_fork_reading();
    test_fork_memory();
    test_exit();
    test_blocked_reader();
    test_popen();
    test_popen_pipes();
    remove_directory();
    return finish("stdio_process");
}
