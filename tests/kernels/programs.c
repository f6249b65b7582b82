/* The programs that tests/kernels traces inside virtual machines. programs NAME runs one of them; each has known counts. */
#define _DEFAULT_SOURCE
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void write_all(int fd, int times, const char *bytes, size_t count)
{
    for (int i = 0; i < times; i++)
        if (write(fd, bytes, count) != (ssize_t)count)
            _exit(3);
}

static void counts(void)
{
    char block[17];
    int in = open("/dev/zero", O_RDONLY), out = open("/dev/null", O_WRONLY);
    write_all(out, 4000, "x", 1);
    for (int i = 0; i < 1000; i++)
        if (read(in, block, sizeof block) != sizeof block)
            _exit(3);
}

static void *writer(void *unused)
{
    (void)unused;
    int fd = open("/dev/null", O_WRONLY);
    write_all(fd, 1000, "y", 1);
    return NULL;
}

static pthread_barrier_t started;

static void *exiting_writer(void *fd)
{
    pthread_barrier_wait(&started);
    for (;;)
        write_all(*(int *)fd, 1, "y", 1);
    return NULL;
}

/* Four threads write; then the process ends by exit_group(2) while four others still run, with 11 pending bytes. */
static void threads(void)
{
    pthread_t thread[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&thread[i], NULL, writer, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    static int fd;
    fd = open("/tmp/endless", O_WRONLY | O_CREAT | O_APPEND, 0600);
    pthread_barrier_init(&started, NULL, 5);
    for (int i = 0; i < 4; i++)
        pthread_create(&thread[i], NULL, exiting_writer, &fd);
    pthread_barrier_wait(&started);
    FILE *file = fopen("/tmp/threads.log", "w");
    fputs("eleven byte", file);
    _exit(0);
}

__attribute__((noinline)) static void log_message(FILE *file, const char *text) { fprintf(file, "%s\n", text); }

/* 42 pending bytes at SIGKILL. The pause lets weir see who writes. */
static void killed(void)
{
    FILE *file = fopen("/tmp/killed.log", "w");
    for (int i = 0; i < 3; i++) {
        log_message(file, "thirteen byte");
        struct timespec pause = {2, 0};
        nanosleep(&pause, NULL);
    }
    kill(getpid(), SIGKILL);
}

/* 9 pending bytes at an execve(2) that fails, then at one that succeeds. */
static void exec(void)
{
    fputs("nine byte", stdout);
    execl("/no/such/program", "program", NULL);
    execl("/proc/self/exe", "programs", "nothing", NULL);
}

/* 12 pending bytes, written by parent and child. */
static void forked(void)
{
    fputs("twelve bytes", stdout);
    if (fork() == 0)
        exit(0);
    wait(NULL);
}

static void descriptors(void)
{
    for (int i = 0; i < 100; i++) {
        int fd = open("/dev/null", O_WRONLY);
        write_all(fd, 3, "four", 4);
    }
}

/* Starts `times` programs, one every 60 ms. Each ends a sampling gap of weir. */
static void start_programs(int times)
{
    for (int i = 0; i < times; i++) {
        struct timespec pause = {0, 60000000};
        nanosleep(&pause, NULL);
        if (fork() == 0) {
            execl("/proc/self/exe", "programs", "nothing", NULL);
            _exit(3);
        }
        wait(NULL);
    }
}

/* Writes until a child has started `starts` programs, or (0) until the file /tmp/stop exists. Then writes the number of its
 * writes to /tmp/writes, by one more. */
static void busy(int starts)
{
    int fd = open("/tmp/busy", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    long writes = 0;
    if (starts && fork() == 0) {
        start_programs(starts);
        _exit(0);
    }
    for (; starts ? waitpid(-1, NULL, WNOHANG) == 0 : access("/tmp/stop", F_OK) != 0; writes += 1000) {
        write_all(fd, 1000, "z", 1);
        if (lseek(fd, 0, SEEK_SET))
            _exit(3);
    }
    FILE *file = fopen("/tmp/writes", "w");
    fprintf(file, "%ld\n", writes);
    fclose(file);
}

/* 14 pending bytes until the file /tmp/stop exists. Then a kill loses them, unless weir run has written them. */
static void delayed(void)
{
    puts("thirteen byte");
    while (access("/tmp/stop", F_OK) != 0) {
        struct timespec pause = {0, 50000000};
        nanosleep(&pause, NULL);
    }
    kill(getpid(), SIGKILL);
}

static volatile sig_atomic_t stopped;

static void on_signal(int signal)
{
    (void)signal;
    stopped = 1;
}

/* 14 pending bytes while the program makes no system call, until SIGUSR1. Then the program writes them itself. */
static void computing(void)
{
    signal(SIGUSR1, on_signal);
    puts("thirteen byte");
    while (!stopped)
        ;
}

/* 3,000 bytes by as many calls. Then writes the kernel's count of its writes to /tmp/writes. */
static void tiny(void)
{
    char text[1024];
    int io = open("/proc/self/io", O_RDONLY), out = open("/tmp/writes", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    write_all(1, 3000, "t", 1);
    ssize_t count = read(io, text, sizeof text - 1);
    text[count < 0 ? 0 : count] = 0;
    const char *writes = strstr(text, "syscw: ");
    if (!writes)
        _exit(3);
    write_all(out, 1, writes + 7, strcspn(writes + 7, "\n"));
}

/* 14 pending bytes until the file /tmp/stop exists, or an end at once. */
static void held(int waits)
{
    puts("thirteen byte");
    while (waits && access("/tmp/stop", F_OK) != 0) {
        struct timespec pause = {0, 50000000};
        nanosleep(&pause, NULL);
    }
    exit(7);
}

/* Executes a command as root or as another user, whose files are below /tmp. */
static void as_user(char **words)
{
    if (!strcmp(words[0], "user") &&
        (mkdir("/tmp/home", 0777), chown("/tmp/home", 1000, 1000) || setgroups(0, NULL) || setgid(1000) || setuid(1000)))
        _exit(4);
    setenv("HOME", "/tmp/home", 1);
    unsetenv("XDG_CACHE_HOME");
    execvp(words[1], words + 1);
    _exit(5);
}

int main(int count, char **argument)
{
    const char *name = count > 1 ? argument[1] : "";
    if (!strcmp(name, "counts"))
        counts();
    else if (!strcmp(name, "threads"))
        threads();
    else if (!strcmp(name, "killed"))
        killed();
    else if (!strcmp(name, "exec"))
        exec();
    else if (!strcmp(name, "forked"))
        forked();
    else if (!strcmp(name, "descriptors"))
        descriptors();
    else if (!strcmp(name, "busy"))
        busy(count > 2 ? atoi(argument[2]) : 0);
    else if (!strcmp(name, "delayed"))
        delayed();
    else if (!strcmp(name, "computing"))
        computing();
    else if (!strcmp(name, "tiny"))
        tiny();
    else if (!strcmp(name, "held") || !strcmp(name, "pending"))
        held(!strcmp(name, "held"));
    else if (!strcmp(name, "as") && count > 3)
        as_user(argument + 2);
    else if (strcmp(name, "nothing"))
        return 2;
    return 0;
}
