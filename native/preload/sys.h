/* sys.h: the library's own system calls. They return what the kernel returns: -errno after an error. */
#ifndef WEIR_SYS_H
#define WEIR_SYS_H

#include <asm/unistd.h>
#include <linux/fcntl.h>
#include <linux/mman.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)
#include "arch/x86_64.h"
#elif defined(__aarch64__)
#include "arch/aarch64.h"
#else
#error "libweir-run.so is for x86-64 and aarch64"
#endif

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define EXPORT __attribute__((visibility("default")))
#define WEAK __attribute__((weak, visibility("default")))

#define sys5(nr, a, b, c, d, e) sys6(nr, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), 0)
#define sys4(nr, a, b, c, d) sys5(nr, a, b, c, d, 0)
#define sys3(nr, a, b, c) sys4(nr, a, b, c, 0)
#define sys2(nr, a, b) sys3(nr, a, b, 0)
#define sys1(nr, a) sys2(nr, a, 0)
#define sys0(nr) sys1(nr, 0)

/* Opens an existing file. */
static inline long sys_open(const char *path, int flags) { return sys4(__NR_openat, AT_FDCWD, path, flags, 0); }
static inline long sys_read(int fd, void *to, size_t n) { return sys3(__NR_read, fd, to, n); }
static inline long sys_write(int fd, const void *from, size_t n) { return sys3(__NR_write, fd, from, n); }
static inline long sys_close(int fd) { return sys1(__NR_close, fd); }

/* Maps private memory of zero bytes. Returns NULL if the kernel has none. */
static inline void *sys_pages(size_t bytes) {
    long at = sys6(__NR_mmap, 0, (long)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return at < 0 && at > -4096 ? NULL : (void *)at; /* an errno is below 4096 */
}
#endif
