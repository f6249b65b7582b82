/* seccomp.c: stops gathering before a program restricts its system calls, which may forbid those of the library. */
#include "gather.h"
#include "libc.h"

enum { PR_SECCOMP = 22, PR_NO_PRIVILEGES = 38 }; /* an unprivileged process sets the second before a filter */

#if WEIR_HAS_DISPATCH
int seccomp_is_restriction(long call, long option) {
    return call == __NR_seccomp || (call == __NR_prctl && (option == PR_SECCOMP || option == PR_NO_PRIVILEGES));
}

static void stop_gathering(void) {
    gather_end_now();
    gather_disable();
}

/* The C library has no function for seccomp(2): programs and libseccomp use this one. */
EXPORT long syscall(long number, long a, long b, long c, long d, long e, long f);
EXPORT long syscall(long number, long a, long b, long c, long d, long e, long f) {
    long (*call)(long, long, long, long, long, long, long) = NEXT("syscall");
    if (unlikely(seccomp_is_restriction(number, (int)a))) stop_gathering();
    return call ? call(number, a, b, c, d, e, f) : result(sys6(number, a, b, c, d, e, f));
}
#endif

EXPORT int prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d);
EXPORT int prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d) {
#if WEIR_HAS_DISPATCH
    if (seccomp_is_restriction(__NR_prctl, option)) stop_gathering();
#endif
    int (*call)(int, unsigned long, unsigned long, unsigned long, unsigned long) = NEXT("prctl");
    return call ? call(option, a, b, c, d) : (int)result(sys5(__NR_prctl, option, a, b, c, d));
}
