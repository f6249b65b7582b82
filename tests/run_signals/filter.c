/* Makes tiny calls, forbids itself all system calls but read(2), write(2) and the exit, and makes tiny calls again. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PERMIT(call) \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static int write_lines(int count) {
    for (int i = 0; i < count; i++)
        if (write(1, "line\n", 5) != 5) return 0;
    return 1;
}

int main(int argc, char **argv) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        PERMIT(SYS_read),
        PERMIT(SYS_write),
        PERMIT(SYS_exit_group),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    int is_prctl = argc > 1 && strcmp(argv[1], "prctl") == 0;
    if (!write_lines(100) || syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return 1;
    if (is_prctl ? syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)
                 : syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program))
        return 2;
    char byte;
    int bytes = 0;
    while (read(0, &byte, 1) == 1) bytes++;
    return write_lines(100) && bytes == 1000 ? 3 : 4;
}
