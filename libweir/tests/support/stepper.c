/* stepper.c: see stepper.h. */
#include "stepper.h"

#include <errno.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

static int nothing(void *context)
{
    (void)context;
    stepper_begin();
    return 0;
}

const char *stepper_obstacle(void)
{
#if defined(__aarch64__)
    /* Without these instructions an atomic add is a load-exclusive loop, which single-stepping makes endless. */
    enum { ATOMICS = 1 << 8 };
    if (!(getauxval(AT_HWCAP) & ATOMICS))
        return "this processor has no atomic instructions that can be single-stepped";
#endif
    int status;
    pid_t child = stepper_start(nothing, NULL);
    if (child < 0 || !stepper_step(child, &status))
        return "ptrace(2) does not work here";
    stepper_kill(child);
    return NULL;
}

pid_t stepper_start(int (*run)(void *context), void *context)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
            _exit(125);
        _exit(run(context));
    }
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFSTOPPED(status))
        return -1;
    return child;
}

void stepper_begin(void) { raise(SIGSTOP); }

bool stepper_step(pid_t child, int *status)
{
    int signal = 0, now;
    for (;;) {
        if (ptrace(PTRACE_SINGLESTEP, child, NULL, (void *)(long)signal) != 0 || waitpid(child, &now, 0) != child) {
            *status = -errno;
            return false;
        }
        if (!WIFSTOPPED(now)) {
            *status = WIFEXITED(now) ? WEXITSTATUS(now) : 128 + WTERMSIG(now);
            return false;
        }
        if (WSTOPSIG(now) == SIGTRAP)
            return true;
        signal = WSTOPSIG(now); /* not of the stepper: deliver it */
    }
}

void stepper_kill(pid_t child)
{
    int status;
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
}
