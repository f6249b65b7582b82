/* mapped.c: remembers mapped files, which are not gathered: memory shows at once what write(2) has written. */
#include "mapped.h"

#include <asm/stat.h>

#include "config.h"
#include "gather.h"
#include "libc.h"

enum { FILES = 16 };

static struct {
    uint64_t dev, ino;
} mapped[FILES];
static int count; /* more than FILES: any file may be one */

int mapped_has(uint64_t dev, uint64_t ino) {
    int known = __atomic_load_n(&count, __ATOMIC_ACQUIRE);
    for (int i = 0; i < known && known <= FILES; i++)
        if (mapped[i].dev == dev && mapped[i].ino == ino) return 1;
    return known > FILES;
}

static void remember(int fd) {
    struct stat stat;
    if (!config.coalesce || fd < 0) return;
    gather_settle();
    if (sys2(__NR_fstat, fd, &stat) < 0 || mapped_has(stat.st_dev, stat.st_ino)) return;
    if (count < FILES) {
        mapped[count].dev = stat.st_dev;
        mapped[count].ino = stat.st_ino;
    }
    if (count <= FILES) __atomic_fetch_add(&count, 1, __ATOMIC_ACQ_REL);
}

/* The kernel is asked directly: allocators map memory before dlsym works. Memory without a file shows nothing. */
#define MAP(name) \
    EXPORT void *name(void *at, size_t bytes, int access, int flags, int fd, long from); \
    EXPORT void *name(void *at, size_t bytes, int access, int flags, int fd, long from) { \
        remember(flags & MAP_ANONYMOUS ? -1 : fd); \
        return (void *)result(sys6(__NR_mmap, (long)at, (long)bytes, access, flags, fd, from)); \
    }
MAP(mmap)
MAP(mmap64)
