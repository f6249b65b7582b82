/* stop_counts.h: counts the stops of stopping_kernel.h: of each system call, before and after it, for each event. */
#ifndef WEIR_TESTS_STOP_COUNTS_H
#define WEIR_TESTS_STOP_COUNTS_H

#include <stdbool.h>

enum { STOP_COUNTS_EVENTS = 16 };

/* Counts a stop before or after `call`; NULL: there was none. */
void stop_counts_note(const char *call, bool after, int event);
/* Prints the counts. With `required` fails if a call had no stop before it or none after it for one of the events, unless
 * the reason is known. */
void stop_counts_check(int events, bool required);

#endif /* WEIR_TESTS_STOP_COUNTS_H */
