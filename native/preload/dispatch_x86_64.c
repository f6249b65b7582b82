/* dispatch_x86_64.c: the handler of Syscall User Dispatch, and weir_counted_call. */
#include "sys.h"

#if defined(__x86_64__)
#include "dispatch.h"
#include "gather.h"
#include "signals.h"

enum { PR_DISPATCH = 59, DISPATCH_CODE = 2 };
enum { FLAG_SIGINFO = 4, FLAG_RESTORER = 0x04000000 };

extern char __ehdr_start[] __attribute__((visibility("hidden")));
extern char etext[] __attribute__((visibility("hidden")));
__attribute__((visibility("hidden"))) void weir_restorer(void);

__asm__(".text\n"
        ".globl weir_restorer, weir_counted_call, weir_counted_call_returned, weir_counted_call_noted\n"
        ".hidden weir_restorer, weir_counted_call, weir_counted_call_returned, weir_counted_call_noted\n"
        ".type weir_counted_call, @function\n"
        /* rt_sigreturn; in the program's code it would be dispatched again */
        "weir_restorer:\n"
        "    mov $15, %eax\n"
        "    syscall\n"
        "weir_counted_call:\n"
        "    mov %rdi, %rax\n"
        "    mov %rsi, %rdi\n"
        "    mov %rdx, %rsi\n"
        "    mov %rcx, %rdx\n"
        "    syscall\n"
        "weir_counted_call_returned:\n"
        "    test %rax, %rax\n"
        "    js weir_counted_call_noted\n"
        "    add %rax, (%r8)\n"
        "weir_counted_call_noted:\n"
        "    ret\n");

struct information { /* siginfo_t of SIGSYS */
    int number, error, code, gap;
    void *call_address;
    int call;
    unsigned architecture;
};

enum { REG_R8, REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RDI, REG_RSI, REG_RBP, REG_RBX,
       REG_RDX, REG_RAX, REG_RCX, REG_RSP, REG_RIP, REG_FLAGS };
struct context { /* ucontext_t: the interrupted thread's registers and mask */
    unsigned long flags;
    struct context *link;
    struct {
        void *at;
        int flags;
        size_t size;
    } stack;
    unsigned long registers[23];
    void *floating;
    uint64_t gap[8];
    uint64_t mask;
};

static struct kernel_action action_before;
static int is_installed;

/* Handles a SIGSYS of a seccomp filter or of kill(2): restores the default action and sends the signal again, which kills the
   process. */
static void raise_foreign_sigsys(void) {
    sys_sigaction(SIG_SYS, &action_before, NULL);
    sys3(__NR_tgkill, sys0(__NR_getpid), sys0(__NR_gettid), SIG_SYS);
}

/* Returns true for a call that must report the late error of its descriptor. */
static int reports_late_error(long call, long fd) {
    switch (call) {
    case __NR_write: case __NR_writev: case __NR_pwrite64: case __NR_pwritev: case __NR_fsync: case __NR_fdatasync:
    case __NR_close: case __NR_sendto: case __NR_sendmsg: case __NR_ftruncate:
        return gather_has_late_error((int)fd);
    }
    return 0;
}

/* Forgets the late errors of descriptors that the call closes without a result for each. */
static void forget_late_errors(long call, const unsigned long *registers) {
    enum { ONLY_MARKS = 4 }; /* CLOSE_RANGE_CLOEXEC */
    unsigned first = (unsigned)registers[REG_RDI], second = (unsigned)registers[REG_RSI];
    if ((call == __NR_dup2 || call == __NR_dup3) && first != second) gather_forget_late_errors(second, second);
    if (call == __NR_close_range && !(registers[REG_RDX] & ONLY_MARKS)) gather_forget_late_errors(first, second);
}

/* Ends the session, and moves the program back to its SYSCALL instruction. The program itself makes the call
   again, so fork, exec, sigreturn and all others need no special case. A close with a late error still closes. */
static void handler(int number, struct information *information, struct context *context) {
    (void)number;
    unsigned long *registers = context->registers;
    long call = information->call, fd = (long)registers[REG_RDI];
    if (information->code != DISPATCH_CODE) {
        raise_foreign_sigsys();
        return;
    }
    gather_end(&context->mask, 1);
    if (call == __NR_rt_sigaction && fd == SIG_SYS && registers[REG_RSI]) gather_disable();
    if (seccomp_is_restriction(call, fd)) gather_disable();
    forget_late_errors(call, registers);
    if (reports_late_error(call, fd)) {
        int late = gather_take_late_error((int)fd); /* only an open descriptor has one */
        if (call == __NR_close) sys_close((int)fd);
        registers[REG_RAX] = (unsigned long)-(long)late;
        return;
    }
    registers[REG_RIP] -= 2;
}

int dispatch_enable(volatile unsigned char *selector) {
    struct kernel_action ours = {(void *)(uintptr_t)handler, FLAG_SIGINFO | FLAG_RESTORER,
                                 (void *)(uintptr_t)weir_restorer, ~UINT64_C(0)};
    if (!is_installed) {
        if (sys_sigaction(SIG_SYS, NULL, &action_before) < 0 || action_before.handler != NULL) return 0;
        if (sys_sigaction(SIG_SYS, &ours, NULL) < 0) return 0;
        is_installed = 1;
    }
    if (!dispatch_owns_sigsys()) return 0;
    return sys5(__NR_prctl, PR_DISPATCH, 1, __ehdr_start, etext - __ehdr_start, selector) == 0;
}

void dispatch_disable(void) {
    sys5(__NR_prctl, PR_DISPATCH, 0, 0, 0, 0);
    if (dispatch_owns_sigsys()) sys_sigaction(SIG_SYS, &action_before, NULL);
    is_installed = 0;
}

int dispatch_is_handler(const void *address) { return address == (void *)(uintptr_t)handler; }

int dispatch_owns_sigsys(void) {
    struct kernel_action now;
    return sys_sigaction(SIG_SYS, NULL, &now) == 0 && dispatch_is_handler(now.handler);
}

#endif
