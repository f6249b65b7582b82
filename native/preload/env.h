/* env.h: children find the library again, whatever the program did to their environment. */
#ifndef WEIR_ENV_H
#define WEIR_ENV_H

#include <stddef.h>

/* A child's environment: LD_PRELOAD with this library and WEIR_RUN as they were at the start; without both for a
   target that cannot load the library. On the caller's stack: between vfork and exec nothing may be allocated. */
size_t env_room(char *const *environment);
char *const *env_kept(char *const *environment, int loads, char *room);
/* Whether the program in this file is one that can load the library: not a 32-bit one. */
int env_loads(int dirfd, const char *path);
/* The same for a name that is looked up in PATH as execvp does. */
int env_loads_searched(const char *name);
#endif
