/* processes MODE [COUNT]: a program with unusual processes and threads. Its output is the same in each run: a line of the
 * end of each process, in an order that the program decides. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static char *self;

static void say(const char *text) {
    if (write(1, text, strlen(text)) != (ssize_t)strlen(text)) _exit(90);
}

/* Waits for a child. Exits if it did not end with this status. */
static void expect(pid_t child, int wanted) {
    int status;
    pid_t got;
    do got = waitpid(child, &status, __WALL);
    while (got < 0 && errno == EINTR);
    if (got != child || !WIFEXITED(status) || WEXITSTATUS(status) != wanted) {
        fprintf(stderr, "child %d: wait %d status %x, wanted %d\n", (int)child, (int)got, status, wanted);
        _exit(91);
    }
}

/* Children that end at once, one after the other: their PIDs and threads are gone before an observer looks. */
static void short_children(int count) {
    for (int number = 0; number < count; number++) {
        pid_t child = fork();
        if (child < 0) _exit(92);
        if (child == 0) _exit(number % 50);
        expect(child, number % 50);
    }
    printf("%d children\n", count);
}

/* Children that all live at the same time, each with a line in its buffer. */
static void concurrent_children(int count) {
    int gate[2];
    pid_t *children = calloc((size_t)count, sizeof *children);
    if (!children || pipe(gate)) _exit(93);
    for (int number = 0; number < count; number++) {
        children[number] = fork();
        if (children[number] < 0) _exit(94);
        if (children[number] == 0) {
            char byte;
            close(gate[1]);
            while (read(gate[0], &byte, 1) < 0 && errno == EINTR) {}
            _exit(3);
        }
    }
    close(gate[0]);
    close(gate[1]);
    for (int number = 0; number < count; number++) expect(children[number], 3);
    free(children);
    printf("%d processes at once\n", count);
}

static void *executes(void *unused) {
    (void)unused;
    execl(self, self, "last", (char *)NULL);
    _exit(95);
}

static void *sleeps(void *unused) {
    for (;;) pause();
    return unused;
}

/* A thread that is not the first one executes: the kernel ends the others, and the thread takes the PID. */
static void thread_executes(int count) {
    pthread_t thread;
    say("before\n");
    for (int number = 0; number < count; number++)
        if (pthread_create(&thread, NULL, sleeps, NULL)) _exit(96);
    if (pthread_create(&thread, NULL, executes, NULL)) _exit(96);
    pthread_join(thread, NULL);
}

static pid_t vforked(void) {
    pid_t child = vfork();
    if (child == 0) {
        execl(self, self, "status", (char *)NULL);
        _exit(98);
    }
    if (child < 0) _exit(97);
    return child;
}

static void vfork_and_exec(int count) {
    for (volatile int number = 0; number < count; number++) expect(vforked(), 9);
    printf("%d vforks\n", count);
}

static int value;

static int changes_memory(void *unused) {
    (void)unused;
    value++;
    say("of the clone\n");
    return 4;
}

static int closes_descriptor(void *fd) {
    close(*(int *)fd);
    return 5;
}

/* Children that share the memory or the descriptor table, but are processes of their own. */
static void sharing_clones(void) {
    size_t bytes = 256 << 10;
    char *stack = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    int fd = dup(1);
    if (stack == MAP_FAILED || fd < 0) _exit(99);
    expect(clone(changes_memory, stack + bytes, CLONE_VM | SIGCHLD, NULL), 4);
    expect(clone(closes_descriptor, stack + bytes, CLONE_FILES | SIGCHLD, &fd), 5);
    printf("value %d, descriptor %s\n", value, write(fd, "x", 1) < 0 && errno == EBADF ? "closed" : "open");
}

/* A child gets the PID of one that has ended: the program sets the number of the last PID. */
static void reused_pid(int count) {
    pid_t first = 0;
    int reused = 0;
    for (int number = 0; number < count; number++) {
        pid_t child = fork();
        if (child == 0) {
            say("of a child\n");
            _exit(6);
        }
        expect(child, 6);
        reused += number > 0 && child == first;
        first = child; /* another one if a thread of a tracer has taken the PID for good */
        FILE *last = fopen("/proc/sys/kernel/ns_last_pid", "w");
        if (!last || fprintf(last, "%d", (int)first - 1) < 0 || fclose(last)) _exit(89);
    }
    printf("%s\n", reused ? "a PID was used again" : "no PID was used again");
}

/* Enters a new namespace, starts a child there, and ends with bytes in its buffer. A program that has got a second thread can
 * enter no user namespace. */
static void enters_new(int flags) {
    if (unshare(flags) != 0) {
        printf("unshare %x: %s\n", (unsigned)flags, strerror(errno));
        exit(2);
    }
    printf("in a new namespace %x\n", (unsigned)flags);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        if (flags & CLONE_NEWPID) printf("as process %d\n", (int)getpid());
        if (flags & CLONE_NEWUTS && sethostname("inside", 6) == 0) printf("with a host name of its own\n");
        exit(3);
    }
    expect(child, 3);
    /* Without /proc the program has no path to its own descriptors. */
    if (flags & CLONE_NEWNS && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0)
        printf("/proc is %s\n", umount2("/proc", MNT_DETACH) == 0 ? "gone" : "there");
    printf("the end there\n");
    exit(1);
}

static void enters_that_of(pid_t process, const char *name, int flags) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/ns/%s", (int)process, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    pid_t child = fork();
    if (child == 0) {
        int entered = setns(fd, flags);
        printf("%s: %s\n", name, entered == 0 ? "entered" : strerror(errno));
        fflush(stdout);
        execl("/proc/self/exe", self, "last", (char *)NULL);
        execl(self, self, "last", (char *)NULL);
        exit(8);
    }
    expect(child, 7);
    close(fd);
}

/* Children that enter new namespaces by unshare(2) and those of another process by setns(2). */
static void namespaces(int count) {
    static const int kinds[] = {CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWNET, CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWUSER,
                                CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWNET | CLONE_NEWIPC};
    int status, gate[2];
    for (size_t kind = 0; kind < (size_t)count * (sizeof kinds / sizeof *kinds); kind++) {
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) enters_new(kinds[kind % (sizeof kinds / sizeof *kinds)]);
        if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) _exit(87);
        printf("it ended with %d\n", WEXITSTATUS(status));
    }
    fflush(stdout);
    char byte = 0;
    if (pipe(gate)) _exit(86);
    pid_t other = fork();
    if (other == 0) {
        byte = (char)unshare(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWNET | CLONE_NEWIPC);
        if (write(gate[1], &byte, 1) != 1) _exit(85);
        for (;;) pause();
    }
    if (read(gate[0], &byte, 1) != 1) _exit(84);
    enters_that_of(other, "uts", CLONE_NEWUTS);
    enters_that_of(other, "ipc", CLONE_NEWIPC);
    enters_that_of(other, "net", CLONE_NEWNET);
    enters_that_of(other, "mnt", CLONE_NEWNS);
    kill(other, SIGKILL);
    if (waitpid(other, &status, 0) != other || !WIFSIGNALED(status)) _exit(83);
    printf("%d kinds of namespaces\n", (int)(sizeof kinds / sizeof *kinds));
}

int main(int words, char **word) {
    static char path[4096];
    const char *mode = words > 1 ? word[1] : "last";
    int count = words > 2 ? atoi(word[2]) : 20;
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    self = length > 0 ? path : word[0];
    if (!strcmp(mode, "last")) printf("the last line\n");
    else if (!strcmp(mode, "status")) return 9;
    else if (!strcmp(mode, "short")) short_children(count);
    else if (!strcmp(mode, "concurrent")) concurrent_children(count);
    else if (!strcmp(mode, "thread-exec")) thread_executes(count);
    else if (!strcmp(mode, "vfork")) vfork_and_exec(count);
    else if (!strcmp(mode, "clones")) sharing_clones();
    else if (!strcmp(mode, "reused")) reused_pid(count);
    else if (!strcmp(mode, "namespaces")) namespaces(count);
    else if (!strcmp(mode, "lines")) for (int line = 0; line < count; line++) printf("line %d\n", line);
    else return 88;
    return 7;
}
