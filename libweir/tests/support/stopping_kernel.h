/* stopping_kernel.h: system calls that stop one thread before or after a call of libweir, so that another thread acts at
 * this moment. */
#ifndef WEIR_TESTS_STOPPING_KERNEL_H
#define WEIR_TESTS_STOPPING_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

/* The call number `at`, from 1 on, of all threads but the first one that calls stopping_begin, is stopped. */
struct stop {
    uint64_t at; /* 0: none */
    bool after;
    const char *name; /* counts only the calls of this name; NULL: all */
    /* Runs in the stopped thread, inside the system call. Returns true if the call is to fail with EINTR; only for a stop
     * before a call that a signal can interrupt. */
    bool (*action)(void);
    bool refuses_fallocate; /* fallocate(2) fails with EOPNOTSUPP, as on a file system that lacks it */
};

enum { STOPPING_CALLS = 29 };
/* The names of all system calls of libweir; NULL is the last. */
extern const char *const stopping_calls[];

void stopping_install(void);
/* Starts counting. The calls of this thread are not counted. */
void stopping_begin(const struct stop *stop);
/* Returns how many calls were counted. */
uint64_t stopping_count(void);
/* Returns the name of the call that was stopped, or NULL. */
const char *stopping_name(void);

#endif /* WEIR_TESTS_STOPPING_KERNEL_H */
