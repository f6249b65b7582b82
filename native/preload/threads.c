/* threads.c: a process that has ever had a second thread gathers nothing: another thread could let others see. */
#include "threads.h"

#include "libc.h"

static int made;

int threads_one(void) { return !made && (!&__libc_single_threaded || __libc_single_threaded); }

EXPORT int pthread_create(unsigned long *thread, const void *attributes, void *(*run)(void *), void *with);
EXPORT int pthread_create(unsigned long *thread, const void *attributes, void *(*run)(void *), void *with) {
    int (*call)(unsigned long *, const void *, void *(*)(void *), void *) = NEXT("pthread_create");
    made = 1;
    return call ? call(thread, attributes, run, with) : 38;
}

EXPORT int thrd_create(unsigned long *thread, int (*run)(void *), void *with);
EXPORT int thrd_create(unsigned long *thread, int (*run)(void *), void *with) {
    int (*call)(unsigned long *, int (*)(void *), void *) = NEXT("thrd_create");
    made = 1;
    return call ? call(thread, run, with) : 2;
}
