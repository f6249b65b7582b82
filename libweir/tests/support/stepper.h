/* stepper.h: a child that stops after every instruction. What others see of it then, in shared memory and in
 * files, is exactly what a SIGKILL right there would leave. */
#ifndef WEIR_TESTS_STEPPER_H
#define WEIR_TESTS_STEPPER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* NULL, or why this machine cannot. */
const char *stepper_obstacle(void);
/* The child runs `run`, at full speed up to stepper_here, and ends with its result as exit status. */
pid_t stepper_start(int (*run)(void *context), void *context);
void stepper_here(void);
/* One instruction (or a whole system call). False: it has ended, *status is as wait_for gives it. */
bool stepper_step(pid_t child, int *status);
void stepper_kill(pid_t child);

#endif /* WEIR_TESTS_STEPPER_H */
