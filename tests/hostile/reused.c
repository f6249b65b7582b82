/* reused KIND COMMAND...: in a PID namespace of its own, starts a process "first" with PID 100 and the command, with its output
 * in the files "output" and "errors". A line of input ends "first" and gives its PID to a process "second" of another user,
 * which has the same memory layout. Then waits for the command and prints its exit code.
 * Each of the two leaves "NAME pending" in a stream over a file "out-NAME"; with KIND "full", that of "first" is a full pipe.
 * Exits with 77 if the system does not allow this. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CANNOT = 77, NUMBER = 100, NOBODY = 65534 };

/* A descriptor of a pipe that takes no more bytes, or of the process's file. */
static int sink(const char *kind, const char *name)
{
    char path[64];
    int ends[2];
    if (!strcmp(kind, "full") && !strcmp(name, "first")) {
        if (pipe(ends) || fcntl(ends[1], F_SETFL, O_NONBLOCK))
            return -1;
        while (write(ends[1], path, sizeof path) > 0)
            ;
        fcntl(ends[1], F_SETFL, 0);
        return ends[1];
    }
    snprintf(path, sizeof path, "out-%s", name);
    return open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
}

static int hold(const char *kind, const char *name)
{
    int fd = sink(kind, name);
    FILE *stream = fd < 0 ? NULL : fdopen(dup2(fd, 20), "w");
    if (!stream || prctl(PR_SET_NAME, name))
        return 1;
    fprintf(stream, "%s pending", name);
    if (write(1, "r", 1) != 1)
        return 1;
    for (;;)
        pause();
}

/* Starts a process with the number, and waits until it is ready. */
static pid_t start(const char *self, const char *kind, const char *name, uid_t user)
{
    pid_t number = NUMBER;
    struct clone_args how = {.exit_signal = SIGCHLD, .set_tid = (uintptr_t)&number, .set_tid_size = 1};
    int ready[2];
    char byte;
    if (pipe(ready))
        exit(CANNOT);
    pid_t pid = (pid_t)syscall(SYS_clone3, &how, sizeof how);
    if (pid == 0) {
        dup2(ready[1], 1);
        close(ready[0]);
        if (setgid(user) || setuid(user))
            _exit(CANNOT);
        execl(self, self, "hold", kind, name, (char *)NULL);
        _exit(1);
    }
    close(ready[1]);
    if (pid < 0 || read(ready[0], &byte, 1) != 1)
        exit(CANNOT);
    close(ready[0]);
    return pid;
}

static pid_t run(char **command)
{
    pid_t pid = fork();
    if (pid == 0) {
        dup2(open("output", O_WRONLY | O_CREAT | O_TRUNC, 0666), 1);
        dup2(open("errors", O_WRONLY | O_CREAT | O_TRUNC, 0666), 2);
        execvp(command[0], command);
        _exit(127);
    }
    return pid;
}

/* The first process of the namespace: its end ends all others. */
static int play(const char *self, const char *kind, char **command)
{
    int status;
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) || mount("proc", "/proc", "proc", 0, NULL))
        return CANNOT;
    pid_t first = start(self, kind, "first", 1);
    pid_t weir = run(command);
    puts("started");
    if (getchar() == EOF || kill(first, SIGKILL) || waitpid(first, NULL, 0) != first)
        return 1;
    if (start(self, kind, "second", NOBODY) != first)
        return 1;
    puts("swapped");
    if (waitpid(weir, &status, 0) != weir)
        return 1;
    printf("%d\n", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    return 0;
}

int main(int argc, char **argv)
{
    char self[4096] = "";
    int status;
    if (argc == 4 && !strcmp(argv[1], "hold"))
        return hold(argv[2], argv[3]);
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc < 3 || readlink("/proc/self/exe", self, sizeof self - 1) < 0)
        return 2;
    if (personality(ADDR_NO_RANDOMIZE) < 0 || unshare(CLONE_NEWPID | CLONE_NEWNS))
        return CANNOT;
    umask(0);
    pid_t init = fork();
    if (init == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        exit(play(self, argv[1], argv + 2));
    }
    return waitpid(init, &status, 0) == init && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
