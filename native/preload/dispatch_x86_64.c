/* dispatch_x86_64.c: the handler of Syscall User Dispatch, and the calls that a kill must not split. */
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
        ".globl weir_restorer, weir_flight, weir_flight_back, weir_flight_done\n"
        ".hidden weir_restorer, weir_flight, weir_flight_back, weir_flight_done\n"
        ".type weir_flight, @function\n"
        "weir_restorer:\n"
        "    mov $15, %eax\n" /* rt_sigreturn, from here: the program's own goes through the door */
        "    syscall\n"
        "weir_flight:\n"
        "    mov %rdi, %rax\n"
        "    mov %rsi, %rdi\n"
        "    mov %rdx, %rsi\n"
        "    mov %rcx, %rdx\n"
        "    syscall\n"
        "weir_flight_back:\n"
        "    test %rax, %rax\n"
        "    js weir_flight_done\n"
        "    add %rax, (%r8)\n"
        "weir_flight_done:\n"
        "    ret\n");

struct information { /* siginfo of SIGSYS */
    int number, error, code, gap;
    void *call_address;
    int call;
    unsigned architecture;
};

enum { REG_R8, REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RDI, REG_RSI, REG_RBP, REG_RBX,
       REG_RDX, REG_RAX, REG_RCX, REG_RSP, REG_RIP, REG_FLAGS };
struct context { /* ucontext: what a handler may change of the interrupted thread */
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

static struct kernel_action before;
static int enabled_signal;

/* Not from our door: a seccomp filter's, or somebody's kill. The default is to die of it, which is what happens. */
static void foreign(void) {
    sys_action(SIG_SYS, &before, NULL);
    sys3(__NR_tgkill, sys0(__NR_getpid), sys0(__NR_gettid), SIG_SYS);
}

/* An error that came late belongs to a call on that descriptor; close still closes. */
static int reports(long call, long fd) {
    switch (call) {
    case __NR_write: case __NR_writev: case __NR_pwrite64: case __NR_pwritev: case __NR_fsync: case __NR_fdatasync:
    case __NR_close: case __NR_sendto: case __NR_sendmsg: case __NR_ftruncate:
        return session->failed_fd == (int)fd + 1;
    }
    return 0;
}

/* Ends the session; then the call is made again, by the program itself, where it stands: so fork, exec, sigreturn and
   all others need no care here. */
static void handler(int number, struct information *information, struct context *context) {
    (void)number;
    unsigned long *registers = context->registers;
    long call = information->call, fd = (long)registers[REG_RDI];
    if (information->code != DISPATCH_CODE) {
        foreign();
        return;
    }
    gather_end(&context->mask, 1);
    if (call == __NR_rt_sigaction && fd == SIG_SYS && registers[REG_RSI]) gather_never();
    if (call == __NR_seccomp) gather_never();
    if (reports(call, fd)) {
        if (call == __NR_close) sys_close((int)fd);
        registers[REG_RAX] = (unsigned long)-(long)gather_late_error((int)fd);
        return;
    }
    registers[REG_RIP] -= 2;
}

int dispatch_enable(volatile unsigned char *selector) {
    struct kernel_action ours = {(void *)(uintptr_t)handler, FLAG_SIGINFO | FLAG_RESTORER,
                                 (void *)(uintptr_t)weir_restorer, ~UINT64_C(0)};
    if (!enabled_signal) {
        if (sys_action(SIG_SYS, NULL, &before) < 0 || before.handler != NULL) return 0;
        if (sys_action(SIG_SYS, &ours, NULL) < 0) return 0;
        enabled_signal = 1;
    }
    if (!dispatch_holds()) return 0;
    return sys5(__NR_prctl, PR_DISPATCH, 1, __ehdr_start, etext - __ehdr_start, selector) == 0;
}

void dispatch_disable(void) {
    sys5(__NR_prctl, PR_DISPATCH, 0, 0, 0, 0);
    if (dispatch_holds()) sys_action(SIG_SYS, &before, NULL);
    enabled_signal = 0;
}

int dispatch_is(const void *address) { return address == (void *)(uintptr_t)handler; }

int dispatch_holds(void) {
    struct kernel_action now;
    return sys_action(SIG_SYS, NULL, &now) == 0 && dispatch_is(now.handler);
}

#endif
