/* Unusual actions between tiny writes, one for each name. Gathered calls must not change their visible effects. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

static void write_each(int fd, const char *text, int times) {
    for (int i = 0; i < times; i++)
        for (const char *at = text; *at; at++)
            if (write(fd, at, 1) != 1) _exit(9);
}

static void set_handler(int number, void (*handler)(int), int flags) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    sigfillset(&action.sa_mask);
    sigaction(number, &action, NULL);
}

static void write_in_handler(int number) {
    (void)number;
    write_each(1, "<h>", 1);
}

static void handler_writes(void) {
    set_handler(SIGUSR1, write_in_handler, 0);
    for (int i = 0; i < 40; i++) {
        write_each(1, "abc", 20);
        raise(SIGUSR1);
    }
}

static void timer_writes(void) { /* a handler at any moment: its bytes stay together, and no byte is lost */
    set_handler(SIGALRM, write_in_handler, SA_RESTART);
    struct itimerval often = {{0, 211}, {0, 211}}, never = {{0, 0}, {0, 0}};
    int fds[2];
    if (pipe(fds)) _exit(1);
    if (!fork()) {
        close(fds[0]);
        dup2(fds[1], 1);
        close(fds[1]);
        setitimer(ITIMER_REAL, &often, NULL);
        write_each(1, "x", 300000);
        setitimer(ITIMER_REAL, &never, NULL);
        _exit(0);
    }
    close(fds[1]);
    char bytes[4096];
    long n, plain = 0, broken = 0, at = 0;
    while ((n = read(fds[0], bytes, sizeof bytes)) > 0)
        for (long i = 0; i < n; i++) {
            if (at && bytes[i] != "<h>"[at]) broken++;
            at = bytes[i] == '<' ? 1 : at && at < 2 ? at + 1 : 0;
            plain += bytes[i] == 'x';
        }
    wait(NULL);
    printf("%ld plain, %ld broken\n", plain, broken);
}

static sigjmp_buf back;
static void jump_from_handler(int number) {
    (void)number;
    write_each(1, "{", 30);
    siglongjmp(back, 1);
}

static void long_jumps(void) {
    set_handler(SIGUSR1, jump_from_handler, 0);
    for (volatile int i = 0; i < 30; i++) {
        write_each(1, "12", 20);
        if (!sigsetjmp(back, 1)) raise(SIGUSR1);
        write_each(1, "}", 1);
    }
}

static void alternate_stack(void) {
    static char stack[65536];
    sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);
    set_handler(SIGUSR1, write_in_handler, SA_ONSTACK);
    write_each(1, "a", 100);
    raise(SIGUSR1);
    write_each(1, "b", 100);
    raise(SIGUSR1);
    stack_t now;
    sigaltstack(NULL, &now);
    printf("%d\n", now.ss_sp == stack && now.ss_flags == 0);
}

static void blocked(void) {
    sigset_t all, before;
    sigfillset(&all);
    write_each(1, "a", 50);
    sigprocmask(SIG_SETMASK, &all, &before);
    write_each(1, "b", 50);
    getppid();
    write_each(1, "c", 50);
    sigprocmask(SIG_SETMASK, &before, NULL);
    write_each(1, "d", 50);
    struct sigaction kept;
    set_handler(SIGUSR1, write_in_handler, 0);
    sigaction(SIGUSR1, NULL, &kept);
    dprintf(1, "%d\n", sigismember(&kept.sa_mask, SIGSYS));
}

static void own_trap(int number, siginfo_t *information, void *context) {
    (void)number;
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RAX] = 1000 + information->si_syscall - SYS_getppid;
}

static void seccomp_trap(void) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {4, filter};
    struct sigaction action = {.sa_sigaction = own_trap, .sa_flags = SA_SIGINFO};
    write_each(1, "before", 30);
    sigaction(SIGSYS, &action, NULL);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
    write_each(1, "after", 30);
    dprintf(1, "%ld\n", syscall(SYS_getppid));
    write_each(1, "end", 30);
}

static void seccomp_strict(void) {
    write_each(1, "before", 30);
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
    write_each(1, "after", 100);
    syscall(SYS_exit, 5);
}

static void dies_of_sigsys(void) {
    write_each(1, "a", 50);
    raise(SIGSYS);
}

static void vfork_child(void) {
    write_each(1, "a", 50);
    for (int i = 0; i < 5; i++) {
        if (!vfork()) {
            write_each(1, "child", 20);
            _exit(0);
        }
        write_each(1, "p", 20);
    }
    pid_t pid;
    char *words[] = {"echo", "spawned", NULL}, *none[] = {NULL};
    posix_spawnp(&pid, "echo", NULL, NULL, words, none);
    waitpid(pid, NULL, 0);
    write_each(1, "b", 50);
    if (!fork()) execl("/bin/echo", "echo", "executed", (char *)NULL);
    while (wait(NULL) > 0) continue;
}

/* Asks for the process's number while bytes are gathered. */
static void check_own_number(void) {
    int asked[40], wrong = 0;
    for (int i = 0; i < 40; i++) {
        write_each(1, "n", 5);
        asked[i] = getpid();
    }
    for (int i = 0; i < 40; i++) wrong += asked[i] != syscall(SYS_getpid);
    write_each(1, wrong ? "wrong" : "right", 20);
}

static void *in_a_thread(void *unused) {
    check_own_number();
    return unused;
}

static void own_number(void) {
    check_own_number();
    if (!fork()) {
        check_own_number();
        _exit(0);
    }
    while (wait(NULL) > 0) continue;
    check_own_number();
    if (!vfork()) {
        check_own_number();
        _exit(0);
    }
    check_own_number();
    pthread_t thread;
    if (!pthread_create(&thread, NULL, in_a_thread, NULL)) pthread_join(thread, NULL);
    check_own_number();
}

static void *in_thread(void *text) {
    write_each(1, text, 100);
    return NULL;
}

static void threads(void) {
    pthread_t one;
    write_each(1, "a", 100);
    pthread_create(&one, NULL, in_thread, "t");
    pthread_join(one, NULL);
    write_each(1, "b", 100);
    pthread_create(&one, NULL, in_thread, "u");
    pthread_join(one, NULL);
}

static int limited(void) {
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){1000, 1000});
    return open("limited", O_WRONLY | O_CREAT | O_TRUNC, 0600);
}

static void file_limit(void) { /* a later call may return the error; the bytes below the limit are written */
    int fd = limited(), error = 0, failed_close;
    for (int i = 0; i < 200000 && !error; i++) error = write(fd, "x", 1) == 1 ? 0 : errno;
    failed_close = close(fd);
    struct stat stat;
    printf("%s, then close %d", strerror(error), failed_close);
    fd = limited(), error = 0;
    for (int i = 0; i < 1100; i++) error |= write(fd, "y", 1) != 1;
    error |= close(fd) != 0;
    printf("; error %d", error);
    fd = open("limited", O_RDONLY);
    fstat(fd, &stat);
    printf("; %ld bytes\n", (long)stat.st_size);
}

static void file_limits(void) { /* each file's error is reported, by the next write to it */
    int first = limited(), second = open("m1", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    int null = open("/dev/null", O_WRONLY), errors[2] = {0, 0};
    for (int i = 0; i < 1010; i++) errors[0] |= write(first, "x", 1) != 1;
    for (int i = 0; i < 1010; i++) errors[1] |= write(second, "y", 1) != 1;
    for (int i = 0; i < 10; i++)
        if (write(null, "z", 1) != 1) _exit(1);
    errors[0] |= write(first, "x", 1) != 1;
    errors[1] |= write(second, "y", 1) != 1;
    printf("errors %d %d\n", errors[0], errors[1]);
}

static void file_limit_kills(void) {
    int fd = limited();
    signal(SIGXFSZ, SIG_DFL);
    write_each(fd, "z", 200000);
}

static void broken_pipe(void) {
    int fds[2];
    if (pipe(fds)) _exit(1);
    close(fds[0]);
    write_each(fds[1], "x", 10000);
}

static void broken_pipe_error(void) {
    int fds[2], error = 0;
    signal(SIGPIPE, SIG_IGN);
    if (pipe(fds)) _exit(1);
    close(fds[0]);
    for (int i = 0; i < 10000 && !error; i++) error = write(fds[1], "x", 1) == 1 ? 0 : errno;
    printf("%s\n", strerror(error));
}

static void exit_in_handler(int number) {
    (void)number;
    _exit(3);
}

static void exit_of_full_pipe(void) { /* a handler exits from a blocking write */
    int fds[2];
    if (pipe(fds)) _exit(1);
    set_handler(SIGALRM, exit_in_handler, 0);
    ualarm(100000, 0);
    write_each(fds[1], "x", 1000000);
}

static void do_nothing(int number) { (void)number; }

static void interrupted_write(void) {
    int fds[2], error = 0;
    if (pipe(fds)) _exit(1);
    set_handler(SIGALRM, do_nothing, 0);
    ualarm(100000, 100000); /* repeated, because the first may come before the pipe is full */
    while (!error) error = write(fds[1], "x", 1) == 1 ? 0 : errno;
    ualarm(0, 0);
    dprintf(2, "%s\n", strerror(error));
    char bytes[4096];
    long n, all = 0;
    if (!fork()) {
        close(fds[1]);
        while ((n = read(fds[0], bytes, sizeof bytes)) > 0) all += n;
        _exit(all >= 65536 ? 4 : 5);
    }
    close(fds[0]);
    close(fds[1]);
    int status;
    wait(&status);
    dprintf(2, "%d\n", WEXITSTATUS(status));
}

static void without_waiting(void) {
    int fds[2], error = 0, n = 0;
    if (pipe2(fds, O_NONBLOCK)) _exit(1);
    for (; !error; n++) error = write(fds[1], "x", 1) == 1 ? 0 : errno;
    printf("%d %s\n", n, strerror(error));
}

static void many_descriptors(void) {
    int a = open("m1", O_RDWR | O_CREAT | O_TRUNC, 0600), b = dup(a), c = open("m1", O_RDWR | O_APPEND);
    for (int i = 0; i < 3000; i++) {
        char byte = 0;
        write_each(i % 7 ? a : i % 3 ? b : c, i % 2 ? "q" : "r", 1 + i % 3);
        if (i % 50 == 0) {
            lseek(b, -2, SEEK_CUR);
            if (read(a, &byte, 1) != 1 || read(b, &byte, 1) != 1) write_each(1, "?", 1);
            write_each(1, &(char[]){byte, 0}[0], 1);
        }
        if (i % 500 == 499) {
            close(b);
            b = dup(a);
            if (ftruncate(c, i)) write_each(1, "!", 1);
        }
    }
}

static void closes_all(void) {
    write_each(1, "a", 50);
    for (int fd = 3; fd < 64; fd++) close(fd);
    clearenv();
    write_each(1, "b", 50);
    if (system("i=0; while [ $i -lt 20 ]; do printf %d $i; i=$((i+1)); done")) write_each(1, "?", 1);
    close(1);
    if (write(1, "x", 1) != -1 || errno != EBADF) _exit(8);
}

static void stdio_and_write(void) {
    for (int i = 0; i < 30; i++) {
        printf("stdio %d\n", i);
        if (i % 3 == 0) fflush(stdout);
        write_each(1, "raw\n", 3);
    }
}

static const struct {
    const char *name;
    void (*run)(void);
} all[] = {
#define ACTION(name) {#name, name}
    ACTION(handler_writes), ACTION(timer_writes), ACTION(long_jumps), ACTION(alternate_stack), ACTION(blocked),
    ACTION(seccomp_trap), ACTION(seccomp_strict), ACTION(dies_of_sigsys), ACTION(vfork_child), ACTION(own_number), ACTION(threads),
    ACTION(file_limit), ACTION(file_limits), ACTION(file_limit_kills), ACTION(broken_pipe), ACTION(broken_pipe_error),
    ACTION(exit_of_full_pipe), ACTION(interrupted_write), ACTION(without_waiting), ACTION(many_descriptors),
    ACTION(closes_all), ACTION(stdio_and_write),
};

int main(int count, char **words) {
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (count < 2) puts(all[i].name);
        else if (!strcmp(words[1], all[i].name)) all[i].run();
    }
    return 0;
}
