/* seccomp.c: stops gathering before a program restricts its system calls, which may forbid those of the library. */
#include "gather.h"
#include "libc.h"

enum { PR_SECCOMP = 22, PR_NO_PRIVILEGES = 38 }; /* without privilege a filter needs the second */

EXPORT int prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d);
EXPORT int prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d) {
#if WEIR_HAS_DISPATCH
    if (option == PR_SECCOMP || option == PR_NO_PRIVILEGES) {
        gather_end_now();
        gather_disable();
    }
#endif
    int (*call)(int, unsigned long, unsigned long, unsigned long, unsigned long) = NEXT("prctl");
    return call ? call(option, a, b, c, d) : (int)result(sys5(__NR_prctl, option, a, b, c, d));
}
