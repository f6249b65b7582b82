/* getpid.c: the process's number without a system call, which would end a session: Python's logging asks for it with each record. */
#include "functions.h"

#include "gather.h"
#include "libc.h"

#if WEIR_HAS_DISPATCH
EXPORT int getpid(void);
EXPORT int getpid(void) {
    struct session *s = session;
    /* During a session the process has one thread, the first one, whose number is the process's. A child of fork(2) has no session,
       and a call that could make another child ends it. */
    return (int)(unlikely(s->selector) ? s->thread : sys0(__NR_getpid));
}
#endif
