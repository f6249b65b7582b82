/* page_access.h: checks whether the program can access its buffer before the library copies. With a bad buffer read(2) and
   write(2) return EFAULT, but a copy raises SIGSEGV.

   The pages of a session are noted when the kernel has confirmed the access. A call that unmaps or protects memory ends
   the session, and the next one begins without noted pages. */
#ifndef WEIR_PAGE_ACCESS_H
#define WEIR_PAGE_ACCESS_H

#include <stddef.h>
#include <stdint.h>

#include "sys.h"

/* A program with more buffers asks the kernel again, which takes about as long as a short system call. */
enum { NOTED_PAGES = 64, ACCESS_PAGE_BYTES = 4096 };

/* Valid after pages_forget. */
struct noted_pages {
    volatile uintptr_t recent;            /* the first address of the page that was noted last, or of this struct's page */
    volatile uintptr_t last[NOTED_PAGES]; /* last addresses of pages, so that 0 is no page */
};

static inline int page_is_noted(const struct noted_pages *pages, uintptr_t address) {
    return pages->last[address / ACCESS_PAGE_BYTES % NOTED_PAGES] == (address | (ACCESS_PAGE_BYTES - 1));
}

/* Returns true if the pages of n bytes, 1 to 4096, are noted. */
static inline int pages_are_noted(const struct noted_pages *pages, const void *from, size_t n) {
    uintptr_t first = (uintptr_t)from;
    if (likely(first - pages->recent <= ACCESS_PAGE_BYTES - n)) return 1;
    return page_is_noted(pages, first) && (n == 1 || page_is_noted(pages, first + n - 1));
}

/* Ask the kernel about pages that are not noted, and note them. */
int pages_note_readable(struct noted_pages *pages, const void *from, size_t n);
int pages_note_writable(struct noted_pages *pages, void *to, size_t n);

/* Return true if the program can read, or write, these 1 to 4096 bytes, and false if the kernel gives no clear answer. */
static inline int pages_readable(struct noted_pages *pages, const void *from, size_t n) {
    return pages_are_noted(pages, from, n) || pages_note_readable(pages, from, n);
}

static inline int pages_writable(struct noted_pages *pages, void *to, size_t n) {
    return pages_are_noted(pages, to, n) || pages_note_writable(pages, to, n);
}
void pages_forget(struct noted_pages *pages);
#endif
