/* stepper.h: single-steps a child. What other processes see of it at a stop, in shared memory and in files, is
 * exactly what a SIGKILL at that instruction would leave. */
#ifndef WEIR_TESTS_STEPPER_H
#define WEIR_TESTS_STEPPER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Returns NULL, or the reason why this machine cannot single-step. */
const char *stepper_obstacle(void);
/* Forks a child that calls `run` and exits with its result; returns when the child has called stepper_begin. */
pid_t stepper_start(int (*run)(void *context), void *context);
void stepper_begin(void);
/* Executes one instruction, or one whole system call. Returns false if the child has ended; *status is then as
 * wait_for returns it. */
bool stepper_step(pid_t child, int *status);
void stepper_kill(pid_t child);

#endif /* WEIR_TESTS_STEPPER_H */
