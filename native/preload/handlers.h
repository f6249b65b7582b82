/* handlers.h: which code the program's signal handlers have interrupted. */
#ifndef WEIR_HANDLERS_H
#define WEIR_HANDLERS_H

#include "libc.h"
#include "signals.h"

/* Prepares the notes, if the configuration flushes streams: with order=1 or exec-flush=1. */
void handlers_start(void);
/* Returns true if a flush of this stream changes nothing that an interrupted function is changing, and does not wait
   for a lock that an interrupted function holds. Always true outside of handlers. */
int handlers_permit_flush(const struct file *stream);
/* Calls the signal's present handler through this library from now on. Called after each change of the action. */
void handlers_wrap(int number);
/* Returns the program's handler of the signal, whose calls handlers_wrap has taken over; null if there is none. */
void *handlers_own(int number);
/* Replaces this library's handler by `own`, the program's at that time, in an action that the program sees. */
void handlers_hide(void **handler, void *own);
#endif
