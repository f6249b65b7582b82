/* exec_flush.c: with exec-flush=1, writes the process's own pending stdio bytes before exec, which would discard
   them. Bytes that were pending at the fork belong to the parent, which writes them itself. */
#include "functions.h"

#include "config.h"
#include "libc.h"
#include "streams.h"

enum { MADV_WIPE_ON_FORK = 18 };

/* The kernel zeroes this page in a forked child. A child of vfork sees its parent's pid. */
static struct owner {
    long pid;
} *owner;

static void on_fork(void) {
    owner->pid = sys0(__NR_getpid);
    streams_note_inherited();
}

void exec_flush_start(void) {
    if (!config.exec_flush || !(owner = sys_pages(4096))) return;
    if (sys3(__NR_madvise, owner, 4096, MADV_WIPE_ON_FORK) < 0) {
        sys2(__NR_munmap, owner, 4096);
        owner = NULL;
        return;
    }
    owner->pid = sys0(__NR_getpid);
    int (*register_fork)(void (*)(void), void (*)(void), void (*)(void), void *) = next("__register_atfork");
    int (*at_fork)(void (*)(void), void (*)(void), void (*)(void)) = next("pthread_atfork");
    if (register_fork) register_fork(NULL, NULL, on_fork, NULL);
    else if (at_fork) at_fork(NULL, NULL, on_fork);
}

void exec_flush(int dirfd, const char *path) {
    if (!owner || owner->pid != sys0(__NR_getpid) || !path) return;
    if (*path && sys4(__NR_faccessat, dirfd, path, 1, 0) < 0) return;
    streams_flush_own();
}
