/* stdin.h: a standard input that belongs to the command alone. */
#ifndef WEIR_STDIN_H
#define WEIR_STDIN_H
/* Gives /dev/null to a process that the command started, if its descriptor 0 is the private one. */
void stdin_start(void);
#endif
