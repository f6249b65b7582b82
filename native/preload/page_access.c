/* page_access.c: asks the kernel whether the program can access a page. */
#include "page_access.h"

#include <asm/errno.h>

enum { NO_SUCH_HOW = 0x7fff, WAKE_OP_PRIVATE = 5 | 128, ADD_ZERO_COMPARE_MINUS_ONE = 1 << 28 | 0xfff };

/* rt_sigprocmask(2) copies the set before it refuses the first argument. */
static int kernel_reads(uintptr_t address) {
    return sys4(__NR_rt_sigprocmask, NO_SUCH_HOW, address & -(uintptr_t)8, 0, 8) == -EINVAL;
}

/* FUTEX_WAKE_OP (futex(2)) adds 0 to the word by an atomic instruction, so no byte changes. It wakes waiters of `unused`, which
   has none, and those of the word if it has been -1: the process has no other thread that could wait. */
static int kernel_writes(uintptr_t address) {
    static uint32_t unused;
    return sys6(__NR_futex, (long)(uintptr_t)&unused, WAKE_OP_PRIVATE, 0, 0, (long)(address & -(uintptr_t)4),
                ADD_ZERO_COMPARE_MINUS_ONE) >= 0;
}

static int page_confirmed(struct noted_pages *pages, uintptr_t address, int (*confirms)(uintptr_t)) {
    if (page_is_noted(pages, address)) return 1;
    if (!confirms(address)) return 0;
    pages->recent = address & -(uintptr_t)ACCESS_PAGE_BYTES;
    pages->last[address / ACCESS_PAGE_BYTES % NOTED_PAGES] = address | (ACCESS_PAGE_BYTES - 1);
    return 1;
}

int pages_note_readable(struct noted_pages *pages, const void *from, size_t n) {
    uintptr_t first = (uintptr_t)from;
    return page_confirmed(pages, first, kernel_reads) && page_confirmed(pages, first + n - 1, kernel_reads);
}

int pages_note_writable(struct noted_pages *pages, void *to, size_t n) {
    uintptr_t first = (uintptr_t)to;
    return page_confirmed(pages, first, kernel_writes) && page_confirmed(pages, first + n - 1, kernel_writes);
}

void pages_forget(struct noted_pages *pages) {
    pages->recent = (uintptr_t)pages & -(uintptr_t)ACCESS_PAGE_BYTES;
    for (int i = 0; i < NOTED_PAGES; i++) pages->last[i] = 0;
}
