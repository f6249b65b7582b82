/* threads.c: notes a second thread. Such a process gathers nothing: another thread could reveal the delay. */
#include "functions.h"

#include "libc.h"

static int has_created;

int threads_single(void) { return !has_created && (!&__libc_single_threaded || __libc_single_threaded); }

EXPORT int pthread_create(unsigned long *thread, const void *attributes, void *(*run)(void *), void *with);
EXPORT int pthread_create(unsigned long *thread, const void *attributes, void *(*run)(void *), void *with) {
    int (*call)(unsigned long *, const void *, void *(*)(void *), void *) = NEXT("pthread_create");
    has_created = 1;
    return call ? call(thread, attributes, run, with) : 38;
}

EXPORT int thrd_create(unsigned long *thread, int (*run)(void *), void *with);
EXPORT int thrd_create(unsigned long *thread, int (*run)(void *), void *with) {
    int (*call)(unsigned long *, int (*)(void *), void *) = NEXT("thrd_create");
    has_created = 1;
    return call ? call(thread, run, with) : 2;
}
