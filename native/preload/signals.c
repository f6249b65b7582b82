/* signals.c: keeps SIGSYS out of the masks of the program's handlers. A blocked SIGSYS kills a process in a
   session. */
#include "signals.h"

#include "config.h"
#include "dispatch.h"
#include "libc.h"

enum { FLAG_RESTART = 0x10000000, KIND_HANDLER = 2 };

static uint64_t blocking; /* the signals whose handlers block SIGSYS in the program's view */

static int has_handler(const struct kernel_action *action) { return (uintptr_t)action->handler >= KIND_HANDLER; }

void signals_start(void) {
    static int done;
    if (done) return;
    done = 1;
    for (int number = 1; number <= SIGNALS; number++) {
        struct kernel_action action;
        if (number == SIG_SYS || sys_sigaction(number, NULL, &action) < 0) continue;
        if (!has_handler(&action) || !(action.mask & SIG_SYS_BIT)) continue;
        blocking |= UINT64_C(1) << (number - 1);
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

/* The first fields of struct sigaction in glibc and musl. */
struct action {
    void *handler;
    uint64_t mask;
    char rest[136];
};

EXPORT int sigaction(int number, const struct action *now, struct action *before);
EXPORT int sigaction(int number, const struct action *now, struct action *before) {
    int (*call)(int, const struct action *, struct action *) = NEXT("sigaction");
    uint64_t bit = number > 0 && number <= SIGNALS ? UINT64_C(1) << (number - 1) : 0, was_blocking = blocking & bit;
    struct action changed;
    if (!call) return fail(-38);
    if (!config.coalesce) return call(number, now, before);
    if (number == SIG_SYS) {
        int status = call(number, now, before);
        if (status == 0 && before && dispatch_is_handler(before->handler)) before->handler = NULL;
        return status;
    }
    if (now && now->mask & SIG_SYS_BIT) {
        changed = *now;
        changed.mask &= ~SIG_SYS_BIT;
    }
    int status = call(number, now && now->mask & SIG_SYS_BIT ? &changed : now, before);
    if (status == 0 && before && was_blocking) before->mask |= SIG_SYS_BIT;
    if (status == 0 && now) blocking = now->mask & SIG_SYS_BIT ? blocking | bit : blocking & ~bit;
    return status;
}
