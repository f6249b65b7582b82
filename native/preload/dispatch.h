/* dispatch.h: Syscall User Dispatch: the one door through which every system call of the program comes. */
#ifndef WEIR_DISPATCH_H
#define WEIR_DISPATCH_H

#include "sys.h"

/* Sends this thread's calls to the handler while *selector is 1. False if the kernel or the program is against it. */
int dispatch_enable(volatile unsigned char *selector);
void dispatch_disable(void);
/* True while SIGSYS is ours. */
int dispatch_holds(void);
/* True for our handler, which the program takes for the default. */
#if WEIR_HAS_DISPATCH
int dispatch_is(const void *handler);
#else
static inline int dispatch_is(const void *handler) { return handler == NULL; }
#endif

/* Makes the call (read or write) and adds a positive result to *counter; see arena.h about a kill in between. */
long weir_flight(long nr, long fd, const void *bytes, unsigned long n, volatile uint64_t *counter);
extern char weir_flight_back[] __attribute__((visibility("hidden")));
extern char weir_flight_done[] __attribute__((visibility("hidden")));
#endif
