/* inherited.c: exec-flush: exec throws stdio's pending bytes away, so this process's own are written out before.
   What was pending when fork made this process belongs to the parent, which will write it itself. */
#include "inherited.h"

#include "config.h"
#include "libc.h"
#include "streams.h"

enum { MADV_WIPE_ON_FORK = 18 };

/* Zero in a fork's child; a vfork's child sees its parent's. */
static struct owner {
    long pid;
} *owner;

static void forked(void) {
    owner->pid = sys0(__NR_getpid);
    streams_inherit();
}

void inherited_start(void) {
    if (!config.exec_flush || !(owner = sys_pages(4096))) return;
    if (sys3(__NR_madvise, owner, 4096, MADV_WIPE_ON_FORK) < 0) {
        sys2(__NR_munmap, owner, 4096);
        owner = NULL;
        return;
    }
    owner->pid = sys0(__NR_getpid);
    int (*register_fork)(void (*)(void), void (*)(void), void (*)(void), void *) = next("__register_atfork");
    int (*at_fork)(void (*)(void), void (*)(void), void (*)(void)) = next("pthread_atfork");
    if (register_fork) register_fork(NULL, NULL, forked, NULL);
    else if (at_fork) at_fork(NULL, NULL, forked);
}

void inherited_flush(void) {
    if (owner && owner->pid == sys0(__NR_getpid)) streams_flush_own();
}
