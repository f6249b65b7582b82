/* tests/page_access.c: compares page_access.c with the protection of mapped pages, in an ordinary program under sanitizers. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "../page_access.h"

static int wrong;
static void check(int holds, const char *what) {
    if (!holds) printf("wrong: %s\n", what), wrong = 1;
}

static struct noted_pages readable, writable;

static void both(char *at, size_t n, int reads, int writes, const char *what) {
    for (int again = 0; again < 2; again++) {
        check(pages_readable(&readable, at, n) == reads, what);
        check(pages_writable(&writable, at, n) == writes, what);
        check(pages_are_noted(&readable, at, n) == reads && pages_are_noted(&writable, at, n) == writes, what);
    }
}

int main(void) {
    enum { PAGE = 4096, PAGES = 200, ALL = PROT_READ | PROT_WRITE };
    char *pages = mmap(NULL, PAGES * PAGE, ALL, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *file = pages + 6 * PAGE;
    pages_forget(&readable);
    pages_forget(&writable);
    memset(pages, 0xff, 2 * PAGE); /* -1 is the word for which FUTEX_WAKE_OP wakes waiters */
    mprotect(pages + 2 * PAGE, PAGE, PROT_READ);
    mprotect(pages + 3 * PAGE, PAGE, PROT_NONE);
    errno = 0;
    both(NULL, 1, 0, 0, "null");
    both((char *)16, 1, 0, 0, "a low address");
    both((char *)~(uintptr_t)0, 1, 0, 0, "the last address");
    both((char *)~(uintptr_t)0, 2, 0, 0, "around the end");
    both((char *)(uintptr_t)0xffff800000000000, 8, 0, 0, "the kernel's address");
    both((char *)(uintptr_t)0x8000000000000000, 8, 0, 0, "no address");
    for (size_t at = 0; at < 9; at++) both(pages + at, 1, 1, 1, "each alignment");
    both(pages + PAGE - 1, 1, 1, 1, "a last byte");
    both(pages + PAGE - 1, 2, 1, 1, "across pages");
    both(pages + PAGE, PAGE, 1, 1, "a whole page");
    both(pages + 2 * PAGE - 1, 2, 1, 0, "up to a read-only byte");
    both(pages + 3 * PAGE - 8, 8, 1, 0, "read-only");
    both(pages + 3 * PAGE - 8, 9, 0, 0, "up to a guard page");
    both(pages + 3 * PAGE, 1, 0, 0, "a guard page");
    both(pages + 4 * PAGE - 1, 2, 0, 0, "from a guard page");
    FILE *empty = tmpfile();
    errno = 0; /* tmpfile(3) leaves one where O_TMPFILE is not supported */
    check(empty != NULL, "a temporary file");
    if (empty && mmap(file, PAGE, ALL, MAP_SHARED | MAP_FIXED, fileno(empty), 0) == file)
        both(file, 1, 0, 0, "behind the end of a file");
    for (int i = 8; i < PAGES; i++) both(pages + i * PAGE + 9, 7, 1, 1, "more pages than entries");
    for (int i = 0; i < 2 * PAGE; i++) check(pages[i] == (char)0xff, "bytes stay");
    check(errno == 0, "errno stays");
    munmap(pages + 8 * PAGE, (PAGES - 8) * PAGE);
    pages_forget(&readable);
    pages_forget(&writable);
    both(pages + (PAGES - 1) * PAGE, 1, 0, 0, "after an unmap");
    puts(wrong ? "failed" : "passed");
    return wrong;
}
