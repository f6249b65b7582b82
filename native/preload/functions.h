/* functions.h: the functions that the files of the library call in each other. gather.h, streams.h, signals.h and
   dispatch.h hold those of their subjects. */
#ifndef WEIR_FUNCTIONS_H
#define WEIR_FUNCTIONS_H

#include <stddef.h>
#include <stdint.h>

/* calls.c: write(2) and read(2) for stdio's internal calls, with their results and errno. Unlike the program's own write,
   they do not flush the stream first. */
long calls_write(int fd, const void *from, size_t n);
long calls_read(int fd, void *to, size_t n);

/* glibc_stdio.c: lets glibc's stdio call calls_write and calls_read. */
void glibc_stdio_start(void);

/* lookup.c: returns the first function of this name in the objects that are loaded after this library, or null. */
void *lookup_next(const char *name);

/* order.c: flushes the stdio streams of a descriptor before the program's own write to it, if order=1. */
void order_flush(int fd);

/* private_stdin.c. private_stdin_start gives /dev/null to a new program that inherits the command's standard input.
   private_stdin_note_read notes a read of descriptor 0 that got bytes. private_stdin_exec gives /dev/null to a child
   whose parent has read from the child's descriptor 0, before an exec; private_stdin_spawn does so in the parent, around
   a call that starts a child. private_stdin_restore takes the result of either and restores the descriptor, after a failed
   exec or after the call. It keeps errno. */
void private_stdin_start(void);
void private_stdin_note_read(void);
int private_stdin_exec(void);
int private_stdin_spawn(void);
void private_stdin_restore(int saved);

/* exec_flush.c: writes the process's own pending stdio bytes before the exec of this file, if exec-flush=1. An empty path
   means the file of the descriptor. It does nothing if the file cannot be executed, because the exec then fails, and in a
   child of vfork. The parent writes the bytes that a fork copied from it. */
void exec_flush_start(void);
void exec_flush(int dirfd, const char *path);

/* threads.c: true if the process has never had a second thread. */
int threads_single(void);

/* mmap.c: true if the program has, or has had, a mapping of this file. */
int mmap_contains(uint64_t dev, uint64_t ino);

/* environment.c: the environment of a child. environment_child returns `environment` with LD_PRELOAD and WEIR_RUN
   as at the start, or without both if `loads` is 0. It builds a changed copy in `room`, which the caller provides
   on its stack: between vfork and exec nothing may be allocated. environment_room returns the size of that memory. */
size_t environment_room(char *const *environment);
char *const *environment_child(char *const *environment, int loads, char *room);
/* Returns whether the program in this file can load the library: false for a 32-bit one. */
int environment_loads(int dirfd, const char *path);
/* Returns the file that execvp executes for this name, null if there is none. A file of PATH is written to `file`. */
enum { FOUND_BYTES = 4096 };
const char *environment_find(const char *name, char *file, size_t room);
/* As environment_loads for a name that execvp looks up in PATH. */
int environment_loads_in_path(const char *name);
#endif
