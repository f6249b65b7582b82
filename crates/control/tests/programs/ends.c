/* Leaves bytes pending in its stream and ends in the way that argv[1] names. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void *pause_forever(void *none) {
    for (;;) pause();
    return none;
}

static void *execute(void *words) {
    execv("/bin/echo", words);
    return 0;
}

static void *end_all(void *none) {
    usleep(20000);
    _exit(6);
    return none;
}

static int in_shared_memory(void *none) {
    (void)none;
    _exit(0);
}

static void children(int how) {
    printf("parent's\n");
    pid_t child = fork();
    if (child == 0) {
        printf("child's\n");
        if (how == 'k') kill(getpid(), SIGKILL);
        _exit(0);
    }
    waitpid(child, 0, 0);
    printf("end\n");
    if (how == 'k') kill(getpid(), SIGKILL);
}

static void shared_memory_children(void) {
    static char stack[1 << 16];
    char *words[] = {"true", 0};
    pid_t child;
    printf("before\n");
    if (posix_spawn(&child, "/bin/true", 0, 0, words, environ) == 0) waitpid(child, 0, 0);
    child = vfork();
    if (child == 0) _exit(0);
    waitpid(child, 0, 0);
    child = clone(in_shared_memory, stack + sizeof stack, CLONE_VM | SIGCHLD, 0);
    waitpid(child, 0, 0);
    child = clone(in_shared_memory, stack + sizeof stack, CLONE_VM | CLONE_FILES | CLONE_FS, 0);
    waitpid(child, 0, __WALL);
    printf("after\n");
    _exit(0);
}

int main(int count, char **words) {
    const char *how = count > 1 ? words[1] : "exit";
    pthread_t thread;
    char *echo[] = {"echo", "executed", 0};
    if (!strcmp(how, "children")) children('e');
    else if (!strcmp(how, "killed-children")) children('k');
    else if (!strcmp(how, "sharers")) shared_memory_children();
    else printf("pending\n");
    if (!strcmp(how, "SIGKILL")) kill(getpid(), SIGKILL);
    if (!strcmp(how, "abort")) abort();
    if (!strcmp(how, "fault")) raise(SIGSEGV);
    if (!strcmp(how, "_exit")) _exit(3);
    if (!strcmp(how, "thread")) {
        pthread_create(&thread, 0, pause_forever, 0);
        usleep(10000);
        kill(getpid(), SIGKILL);
    }
    if (!strcmp(how, "leader-first")) {
        pthread_create(&thread, 0, end_all, 0);
        pthread_exit(0);
    }
    if (!strcmp(how, "exec-in-thread")) {
        fflush(stdout);
        pthread_create(&thread, 0, execute, echo);
        pthread_join(thread, 0);
    }
    if (!strcmp(how, "status")) return 42;
    if (!strcmp(how, "daemon")) {
        if (fork() > 0) exit(0);
        setsid();
        alarm(60);
        while (access(words[2], F_OK) != 0) usleep(5000);
        printf("from the daemon\n");
    }
    if (!strcmp(how, "wait")) {
        fflush(stdout);
        for (;;) pause();
    }
    return 0;
}
