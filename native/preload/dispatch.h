/* dispatch.h: Syscall User Dispatch (prctl(2)), by which the kernel sends the program's system calls to the
   library. */
#ifndef WEIR_DISPATCH_H
#define WEIR_DISPATCH_H

#include "sys.h"

/* Sends this thread's calls to the handler while *selector is 1. Returns false if the kernel has no such dispatch, or
   the program handles SIGSYS itself. */
int dispatch_enable(volatile unsigned char *selector);
void dispatch_disable(void);
/* Returns true while the handler of SIGSYS is the library's. */
int dispatch_owns_sigsys(void);
/* Returns true for the library's handler, which the program sees as the default action. */
#if WEIR_HAS_DISPATCH
int dispatch_is_handler(const void *handler);
#else
static inline int dispatch_is_handler(const void *handler) { return handler == NULL; }
#endif

/* Makes a read or write, and adds a positive result to *counter. arena.h describes a kill between both. */
long weir_counted_call(long nr, long fd, const void *bytes, unsigned long n, volatile uint64_t *counter);
extern char weir_counted_call_returned[] __attribute__((visibility("hidden")));
extern char weir_counted_call_noted[] __attribute__((visibility("hidden")));
#endif
