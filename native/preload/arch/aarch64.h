/* arch/aarch64.h: raw system calls on aarch64. */
#ifndef WEIR_ARCH_H
#define WEIR_ARCH_H

#define WEIR_HAS_DISPATCH 0 /* the kernel has no Syscall User Dispatch here: nothing is gathered */

static inline long sys6(long nr, long a, long b, long c, long d, long e, long f) {
    register long x8 __asm__("x8") = nr;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return x0;
}

/* Returns the general registers in a signal handler's context (ucontext_t); the stack pointer and the instruction pointer
   are behind them. */
enum { ARCH_REGISTERS = 31, ARCH_INSTRUCTION_POINTER = 32 };
static inline const unsigned long *arch_registers(const void *context) { return (const unsigned long *)context + 23; }
/* Returns true if an SVC instruction begins or ends here: the kernel makes the call again, or has made it. */
static inline int arch_is_at_call(const unsigned char *at) {
    const unsigned *words = (const unsigned *)(const void *)at;
    return words[0] == 0xd4000001 || words[-1] == 0xd4000001;
}
#endif
