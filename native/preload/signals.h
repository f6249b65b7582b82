/* signals.h: what the library needs to know of signals, in the kernel's own layout. */
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

static inline long sys_action(int number, const struct kernel_action *now, struct kernel_action *before) {
    return sys4(__NR_rt_sigaction, number, now, before, 8);
}

static inline uint64_t signals_mask(uint64_t mask) {
    uint64_t before = 0;
    sys4(__NR_rt_sigprocmask, MASK_SET, &mask, &before, 8);
    return before;
}

/* A signal that arrives in a session finds SIGSYS unblocked: no handler may block it while it runs. Does so for all
   handlers there are; later ones pass sigaction in sigaction.c. */
void signals_start(void);
/* True if every handler wants interrupted calls to be restarted. */
int signals_restart(void);
#endif
