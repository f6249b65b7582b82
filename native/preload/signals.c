/* signals.c: keeps SIGSYS out of the masks of the program's handlers, and checks whether its handlers restart calls. In a
   session of gathering (gather.h) system calls raise SIGSYS; the kernel kills a process that blocks it. */
#include "signals.h"

#include "config.h"
#include "dispatch.h"
#include "handlers.h"
#include "libc.h"

enum { FLAG_RESTART = 0x10000000, FIRST_HANDLER = 2 /* 0 is SIG_DFL, 1 is SIG_IGN */ };

static uint64_t wants_blocked; /* bit N - 1: the program put SIGSYS into the sa_mask of signal N */

static int has_handler(const struct kernel_action *action) { return (uintptr_t)action->handler >= FIRST_HANDLER; }

void signals_start(void) {
    static int started;
    if (started) return;
    started = 1;
    for (int number = 1; number <= SIGNALS; number++) {
        struct kernel_action action;
        if (number == SIG_SYS || sys_sigaction(number, NULL, &action) < 0) continue;
        if (!has_handler(&action) || !(action.mask & SIG_SYS_BIT)) continue;
        wants_blocked |= UINT64_C(1) << (number - 1);
        action.mask &= ~SIG_SYS_BIT;
        sys_sigaction(number, &action, NULL);
    }
}

int signals_all_restart(void) {
    for (int number = 1; number <= SIGNALS; number++) {
        struct kernel_action action;
        if (number == SIG_SYS || sys_sigaction(number, NULL, &action) < 0) continue;
        if (has_handler(&action) && !(action.flags & FLAG_RESTART)) return 0;
    }
    return 1;
}

/* struct sigaction of glibc and musl, of 152 bytes; `mask` has its first 64 signals. */
struct libc_action {
    void *handler;
    uint64_t mask;
    char rest[136];
};

typedef int sigaction_call(int, const struct libc_action *, struct libc_action *);

/* With coalesce, keeps SIGSYS out of the mask, and hides that and the library's own handler from the program. */
static int set_unmasked(sigaction_call *call, int number, const struct libc_action *act, struct libc_action *oldact) {
    uint64_t bit = number > 0 && number <= SIGNALS ? UINT64_C(1) << (number - 1) : 0;
    uint64_t had_blocked = wants_blocked & bit;
    int blocks = act && act->mask & SIG_SYS_BIT;
    struct libc_action changed;
    if (!config.coalesce) return call(number, act, oldact);
    if (number == SIG_SYS) {
        /* The program does not see weir's handler. */
        int status = call(number, act, oldact);
        if (status == 0 && oldact && dispatch_is_handler(oldact->handler)) oldact->handler = NULL;
        return status;
    }
    if (blocks) {
        changed = *act;
        changed.mask &= ~SIG_SYS_BIT;
    }
    int status = call(number, blocks ? &changed : act, oldact);
    if (status == 0 && oldact && had_blocked) oldact->mask |= SIG_SYS_BIT;
    if (status == 0 && act) wants_blocked = blocks ? wants_blocked | bit : wants_blocked & ~bit;
    return status;
}

EXPORT sigaction_call sigaction;
EXPORT int sigaction(int number, const struct libc_action *act, struct libc_action *oldact) {
    sigaction_call *call = NEXT("sigaction");
    void *own = handlers_own(number);
    int status = call ? set_unmasked(call, number, act, oldact) : fail(-38);
    if (status == 0 && oldact) handlers_hide(&oldact->handler, own);
    if (status == 0 && act) handlers_wrap(number);
    return status;
}
