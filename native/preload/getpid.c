/* getpid.c: returns the PID during a session without a system call, which would end the session. Python's logging asks for the
   PID with each record. */
#include "functions.h"

#include "gather.h"
#include "libc.h"

#if WEIR_HAS_DISPATCH
EXPORT int getpid(void);
EXPORT int getpid(void) {
    struct session *s = session;
    /* During a session the process has only its first thread, whose thread ID is the PID. A child of fork(2) has no session, and
       a call that could make another child ends the session. */
    return (int)(unlikely(s->selector) ? s->thread : sys0(__NR_getpid));
}
#endif
