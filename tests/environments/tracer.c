/* Traces another process as debuggers do. Its output and status are the same without weir.
 *
 * tracer traceme|seize|attach: traces a child until its end.
 * tracer parent: a child attaches to its parent, which has pending bytes, and detaches. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

/* Waits until the tracer closes its end, and makes system calls. */
static void child(const char *way, int gate[2])
{
    char byte;
    close(gate[1]);
    if (strcmp(way, "traceme") == 0) {
        if (ptrace(PTRACE_TRACEME, 0, 0, 0) != 0)
            _exit(9);
        raise(SIGSTOP);
    } else if (read(gate[0], &byte, 1) != 0) {
        _exit(8);
    }
    for (int i = 0; i < 10; i++)
        getppid();
    _exit(5);
}

static int trace_child(const char *way)
{
    int gate[2], status, stops = 0;
    if (pipe(gate) != 0)
        return 20;
    printf("%s\n", way);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        child(way, gate);
    close(gate[0]);
    if (strcmp(way, "seize") == 0) {
        if (ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_TRACESYSGOOD) != 0)
            return printf("seize: %s\n", strerror(errno)), kill(pid, SIGKILL), 21;
        ptrace(PTRACE_INTERRUPT, pid, 0, 0);
    } else if (strcmp(way, "attach") == 0 && ptrace(PTRACE_ATTACH, pid, 0, 0) != 0) {
        return printf("attach: %s\n", strerror(errno)), kill(pid, SIGKILL), 22;
    }
    close(gate[1]);
    if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
        return printf("no first stop: %x\n", status), 23;
    if (strcmp(way, "seize") != 0)
        ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACESYSGOOD);
    for (;;) {
        if (ptrace(PTRACE_SYSCALL, pid, 0, 0) != 0 || waitpid(pid, &status, 0) != pid)
            return printf("lost: %s\n", strerror(errno)), 24;
        if (!WIFSTOPPED(status))
            break;
        stops += WSTOPSIG(status) == (SIGTRAP | 0x80);
    }
    printf("exit %d, %s stops\n", WEXITSTATUS(status), stops >= 20 ? "all" : "few");
    return 7;
}

static int trace_parent(void)
{
    int status;
    printf("pending ");
    fflush(stdout);
    printf("bytes\n");
    pid_t pid = fork();
    if (pid == 0) {
        usleep(100000); /* longer than the delay of weir */
        if (ptrace(PTRACE_ATTACH, getppid(), 0, 0) != 0)
            _exit(30);
        if (waitpid(getppid(), &status, 0) != getppid() || !WIFSTOPPED(status))
            _exit(31);
        _exit(ptrace(PTRACE_DETACH, getppid(), 0, 0) == 0 ? 6 : 32);
    }
    if (waitpid(pid, &status, 0) != pid)
        return 33;
    return WEXITSTATUS(status);
}

int main(int count, char **words)
{
    if (count != 2)
        return 2;
    return strcmp(words[1], "parent") == 0 ? trace_parent() : trace_child(words[1]);
}
