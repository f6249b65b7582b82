/* arch/x86_64.h: system calls by hand on x86-64; nothing of it may go through a C library. */
#ifndef WEIR_ARCH_H
#define WEIR_ARCH_H

#define WEIR_HAS_DISPATCH 1 /* Syscall User Dispatch, see dispatch.c */

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

/* True and stored if *word was still `old`. Whole for signal handlers of this thread, which is all that is asked:
   no lock prefix, so it costs about as much as a plain store. */
static inline int swap_if(volatile unsigned long *word, unsigned long old, unsigned long now) {
    unsigned char same;
    __asm__ volatile("cmpxchgq %3, %1" : "=@ccz"(same), "+m"(*word), "+a"(old) : "r"(now) : "memory");
    return same;
}
#endif
