/* libc.h: the program's C library, glibc or musl. All references are weak, so a missing function is null. */
#ifndef WEIR_LIBC_H
#define WEIR_LIBC_H

#include <linux/elf.h>

#include "functions.h"
#include "sys.h"

struct file; /* a stdio stream of glibc or musl */

extern struct file *stdin WEAK;
extern struct file *stdout WEAK;
extern struct file *stderr WEAK;
extern char **__environ WEAK;
extern char __libc_single_threaded WEAK; /* glibc 2.32 and later */
WEAK const char *gnu_get_libc_version(void);
WEAK int *__errno_location(void);
WEAK void *dlsym(void *handle, const char *name); /* in libdl up to glibc 2.33 */
WEAK int fileno(struct file *stream);
WEAK int fflush(struct file *stream);
WEAK size_t __fpending(struct file *stream);

struct object { /* the first fields of dl_phdr_info */
    uintptr_t base;
    const char *name;
    const Elf64_Phdr *headers;
    uint16_t count;
};
WEAK int dl_iterate_phdr(int (*each)(struct object *, size_t, void *), void *with);

/* Returns the function that the program would have got without this library, or null. */
static inline void *next(const char *name) { return dlsym ? dlsym((void *)-1, name) : lookup_next(name); }

/* NEXT(name) looks a function up once, because dlsym takes a lock. */
#define NEXT(name) \
    ({ \
        static void *found; \
        if (!found) found = next(name); \
        found; \
    })

/* Sets errno from a kernel's result, and returns -1. */
static inline int fail(long minus_errno) {
    if (__errno_location) *__errno_location() = (int)-minus_errno;
    return -1;
}

/* Converts a kernel's result to that of a C library. */
static inline long result(long kernel) { return kernel < 0 && kernel > -4096 ? fail(kernel) : kernel; }
#endif
