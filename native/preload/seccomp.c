/* seccomp.c: a program that is about to restrict its own system calls must not meet ours afterwards. */
#include "gather.h"
#include "libc.h"

enum { PR_SECCOMP = 22, PR_NO_PRIVILEGES = 38 }; /* a filter needs the second, but for root */

EXPORT int prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d);
EXPORT int prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d) {
#if WEIR_HAS_DISPATCH
    if (option == PR_SECCOMP || option == PR_NO_PRIVILEGES) {
        gather_settle();
        gather_never();
    }
#endif
    int (*call)(int, unsigned long, unsigned long, unsigned long, unsigned long) = NEXT("prctl");
    return call ? call(option, a, b, c, d) : (int)result(sys5(__NR_prctl, option, a, b, c, d));
}
