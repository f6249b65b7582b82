/* signals.h: signal actions and masks in the kernel's layout. */
#ifndef WEIR_SIGNALS_H
#define WEIR_SIGNALS_H

#include <stdint.h>

#include "sys.h"

enum { SIGNALS = 64, SIG_SYS = 31, SIG_KEEP_MASK = 0x40000000, MASK_SET = 2 };
#define SIG_SYS_BIT (UINT64_C(1) << (SIG_SYS - 1))

struct kernel_action {
    void *handler; /* 0 default, 1 ignored */
    unsigned long flags;
    void *restorer;
    uint64_t mask;
};

static inline long sys_sigaction(int number, const struct kernel_action *now, struct kernel_action *before) {
    return sys4(__NR_rt_sigaction, number, now, before, 8);
}

/* Sets this thread's signal mask, and returns the former one. */
static inline uint64_t signals_mask(uint64_t mask) {
    uint64_t before = 0;
    sys4(__NR_rt_sigprocmask, MASK_SET, &mask, &before, 8);
    return before;
}

/* Removes SIGSYS from the masks of all present handlers, because a system call in a session raises SIGSYS. The
   sigaction of signals.c does the same for later handlers. */
void signals_start(void);
/* Returns true if every handler has SA_RESTART. */
int signals_all_restart(void);
#endif
