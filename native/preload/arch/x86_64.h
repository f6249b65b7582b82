/* arch/x86_64.h: raw system calls on x86-64. */
#ifndef WEIR_ARCH_H
#define WEIR_ARCH_H

#define WEIR_HAS_DISPATCH 1 /* Syscall User Dispatch: see dispatch_x86_64.c */

static inline long sys6(long nr, long a, long b, long c, long d, long e, long f) {
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

/* Returns the general registers in a signal handler's context (ucontext_t); the instruction pointer is behind them. */
enum { ARCH_REGISTERS = 16, ARCH_INSTRUCTION_POINTER = 16 };
static inline const unsigned long *arch_registers(const void *context) { return (const unsigned long *)context + 5; }
/* Returns true if a SYSCALL instruction begins or ends here: the kernel makes the call again, or has made it. */
static inline int arch_is_at_call(const unsigned char *at) {
    return (at[0] == 0x0f && at[1] == 0x05) || (at[-2] == 0x0f && at[-1] == 0x05);
}
#endif
