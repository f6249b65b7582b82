/* mmap.c: notes mapped files, whose writes are not gathered: the program sees them in memory without a call. */
#include "functions.h"

#include <asm/stat.h>

#include "config.h"
#include "gather.h"
#include "libc.h"

enum { MAX_MAPPED = 16 };

static struct {
    uint64_t dev, ino;
} mapped[MAX_MAPPED];
static int count; /* more than MAX_MAPPED: any file may be mapped */

int mmap_contains(uint64_t dev, uint64_t ino) {
    int known = __atomic_load_n(&count, __ATOMIC_ACQUIRE);
    for (int i = 0; i < known && known <= MAX_MAPPED; i++)
        if (mapped[i].dev == dev && mapped[i].ino == ino) return 1;
    return known > MAX_MAPPED;
}

static void note_mapping(int fd) {
    struct stat stat;
    if (!config.coalesce || fd < 0) return;
    gather_end_now();
    if (sys2(__NR_fstat, fd, &stat) < 0 || mmap_contains(stat.st_dev, stat.st_ino)) return;
    if (count < MAX_MAPPED) {
        mapped[count].dev = stat.st_dev;
        mapped[count].ino = stat.st_ino;
    }
    if (count <= MAX_MAPPED) __atomic_fetch_add(&count, 1, __ATOMIC_ACQ_REL);
}

/* Makes the system call itself, because allocators map memory before dlsym works. Anonymous memory has no file to
   note. The call does not go through the handler, so the notes about replaced pages are deleted here. */
#define MAP(name) \
    EXPORT void *name(void *at, size_t bytes, int access, int flags, int fd, long from); \
    EXPORT void *name(void *at, size_t bytes, int access, int flags, int fd, long from) { \
        note_mapping(flags & MAP_ANONYMOUS ? -1 : fd); \
        long kernel = sys6(__NR_mmap, (long)at, (long)bytes, access, flags, fd, from); \
        if (flags & MAP_FIXED) gather_forget_pages(); \
        return (void *)result(kernel); \
    }
MAP(mmap)
MAP(mmap64)
