/* threads.h: whether the process has one thread. */
#ifndef WEIR_THREADS_H
#define WEIR_THREADS_H
int threads_one(void);
#endif
