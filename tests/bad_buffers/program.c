/* Tiny calls, and between them calls with buffers that the program cannot access. The result, errno, offset and bytes of each
   go to standard output at the end. The argument "raw" makes the bad calls by the SYSCALL instruction, "libc" by libc. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { PAGE = 4096, CALLS = 100 };
static int raw;
static char *bad = (char *)16;

static long call3(long number, long a, const void *b, long c) {
#ifdef __x86_64__
    if (raw) {
        long result;
        __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
        if (result < 0) errno = (int)-result;
        return result < 0 ? -1 : result;
    }
#endif
    if (number == SYS_write) return write((int)a, b, (size_t)c);
    if (number == SYS_read) return read((int)a, (void *)(uintptr_t)b, (size_t)c);
    return writev((int)a, b, (int)c);
}

/* Two pages, the second one without access. Returns the address of the second. */
static char *guarded(void) {
    char *at = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(at, 'g', 2 * PAGE);
    mprotect(at + PAGE, PAGE, PROT_NONE);
    return at + PAGE;
}

static void tiny_writes(int fd) {
    for (int i = 0; i < CALLS; i++)
        if (write(fd, i % 2 ? "b" : "a", 1) != 1) _exit(9);
}

static void report(const char *name, long result, int fd) {
    int error = result < 0 ? errno : 0;
    printf("%s: %ld, errno %d, offset %ld\n", name, result, error, (long)lseek(fd, 0, SEEK_CUR));
}

static void bad_write(const char *name, int fd, const void *from, long n) {
    tiny_writes(fd);
    report(name, call3(SYS_write, fd, from, n), fd);
    tiny_writes(fd);
}

static void bad_writev(const char *name, int fd, const void *parts, long count) {
    tiny_writes(fd);
    report(name, call3(SYS_writev, fd, parts, count), fd);
}

static void writes(int fd) {
    char *page = guarded();
    struct iovec bad_first[] = {{bad, 1}, {"x", 1}}, bad_second[] = {{"x", 1}, {bad, 1}}, empty[] = {{bad, 0}, {"x", 1}};
    struct iovec *across = (struct iovec *)(guarded() - sizeof(struct iovec));
    *across = (struct iovec){"y", 1};
    bad_write("low address", fd, bad, 1);
    bad_write("null", fd, NULL, 5);
    bad_write("kernel's address", fd, (void *)~0xfffUL, 8);
    bad_write("last address", fd, (void *)~0UL, 2);
    bad_write("no bytes", fd, bad, 0);
    bad_write("guard page", fd, page, 1);
    bad_write("up to the guard page", fd, page - 4, 4);
    bad_write("across it", fd, page - 4, 8);
    bad_write("across it again", fd, page - 600, 1000);
    bad_writev("bad first part", fd, bad_first, 2);
    bad_writev("bad second part", fd, bad_second, 2);
    bad_writev("bad empty part", fd, empty, 2);
    bad_writev("bad parts", fd, bad, 2);
    bad_writev("parts across the guard page", fd, across, 2);
    bad_writev("one part before it", fd, across, 1);
}

/* The page changes between two calls that gather. */
static void changed_pages(int fd) {
    char *page = guarded() - PAGE;
    for (int i = 0; i < CALLS; i++) write(fd, page + i, 1);
    mprotect(page, PAGE, PROT_NONE);
    bad_write("protected", fd, page, 1);
    mprotect(page, PAGE, PROT_READ);
    for (int i = 0; i < CALLS; i++) write(fd, page + i, 1);
    mmap(page, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    report("mapped anew", call3(SYS_write, fd, page, 1), fd);
    mmap(page, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    for (int i = 0; i < CALLS; i++) write(fd, page + i, 1);
    munmap(page, PAGE);
    bad_write("unmapped", fd, page, 3);
}

static void bad_read(const char *name, int fd, void *to, long n) {
    char byte, *rest = to;
    unsigned sum = 0;
    for (int i = 0; i < CALLS && read(fd, &byte, 1) == 1; i++) sum = sum * 31 + (unsigned char)byte;
    long got = call3(SYS_read, fd, to, n);
    report(name, got, fd);
    for (long i = 0; i < got; i++) sum = sum * 31 + (unsigned char)rest[i];
    for (int i = 0; i < CALLS && read(fd, &byte, 1) == 1; i++) sum = sum * 31 + (unsigned char)byte;
    printf("  bytes %u, offset %ld\n", sum, (long)lseek(fd, 0, SEEK_CUR));
}

static void reads(int fd, int from_end) {
    char *page = guarded(), *constant = guarded() - PAGE;
    mprotect(constant, PAGE, PROT_READ);
    bad_read("low address", fd, bad, 1);
    bad_read("null", fd, NULL, 5);
    bad_read("kernel's address", fd, (void *)~0xfffUL, 8);
    bad_read("last address", fd, (void *)~0UL, 2);
    bad_read("no bytes", fd, bad, 0);
    bad_read("guard page", fd, page, 1);
    bad_read("up to the guard page", fd, page - 4, 4);
    bad_read("across it", fd, page - 4, 8);
    bad_read("across it again", fd, page - 600, 1000);
    bad_read("read-only", fd, constant, 1);
    if (!from_end) return;
    lseek(fd, -CALLS - 2, SEEK_END);
    bad_read("two bytes before the end", fd, page - 4, 8);
    lseek(fd, -CALLS, SEEK_END);
    bad_read("at the end", fd, bad, 1);
}

static void print_sum(const char *name, int fd) {
    static char bytes[1 << 17];
    unsigned sum = 0;
    long got = read(fd, bytes, sizeof bytes);
    for (long i = 0; i < got; i++) sum = sum * 31 + (unsigned char)bytes[i];
    printf("%s: %ld bytes, %u\n", name, got, sum);
}

int main(int count, char **arguments) {
    int pipes[2], sockets[2], file = open("file", O_RDWR | O_CREAT | O_TRUNC, 0600);
    raw = count > 1 && !strcmp(arguments[1], "raw");
    if (pipe(pipes) || socketpair(AF_UNIX, SOCK_STREAM, 0, sockets)) return 1;
    writes(file);
    changed_pages(file);
    tiny_writes(file);
    report("close of no descriptor", close(-1), file);
    tiny_writes(file);
    report("write to no descriptor", call3(SYS_write, -1, bad, 2000), file);
    lseek(file, 0, SEEK_SET);
    print_sum("file", file);
    writes(pipes[1]);
    print_sum("pipe", pipes[0]);
    bad_write("low address", sockets[1], bad, 1); /* a socket takes about 270 tiny writes */
    print_sum("socket", sockets[0]);
    for (int i = 0; i < 20000; i++)
        if (write(file, &"0123456789abcdefghijklmn"[i % 23], 1) != 1) return 1;
    lseek(file, 1, SEEK_SET);
    reads(file, 1);
    for (int i = 0; i < 5000; i++) write(pipes[1], &"0123456789abcdefghijklmn"[i % 23], 1);
    reads(pipes[0], 0);
    return 0;
}
