/* Tiny writes to a file that takes 30 bytes, and what follows their flush: argv[1] names it. Prints the results. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIMIT = 30, TINY_WRITES = 40, FILES = 6 };

static int create(const char *name) { return open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600); }

static void write_each(int fd) {
    for (int i = 0; i < TINY_WRITES; i++)
        if (write(fd, "x", 1) != 1) dprintf(2, "early %d ", errno);
}

static int fill(const char *name) {
    int fd = create(name);
    write_each(fd);
    syscall(SYS_getppid); /* ends the session: the flush fails */
    return fd;
}

/* Closes a descriptor in this way, and gives its number to another file. */
static void replace(const char *how) {
    int other = create("other"), fd = fill("first");
    if (!strcmp(how, "close")) dprintf(2, "close %d, ", close(fd) ? errno : 0);
    if (!strcmp(how, "dup2")) dup2(other, fd);
    if (!strcmp(how, "dup3")) dup3(other, fd, 0);
    if (!strcmp(how, "close_range")) syscall(SYS_close_range, fd, fd, 0);
    if (!strcmp(how, "raw")) syscall(SYS_close, fd);
    if (strncmp(how, "dup", 3)) fd = create("other");
    dprintf(2, "write %d, ", (int)write(fd, "first", 5));
    dprintf(2, "close %d", close(fd));
}

static void fail_in_many(void) {
    int fds[FILES], errors = 0;
    for (int i = 0; i < FILES; i++) fds[i] = fill((char[]){'f', (char)('0' + i), 0});
    for (int i = 0; i < FILES; i++) errors += close(fds[i]) != 0 && errno == EFBIG;
    dprintf(2, "%d errors", errors);
}

static void close_stream(void) {
    FILE *stream = fopen("first", "w");
    setvbuf(stream, NULL, _IONBF, 0);
    for (int i = 0; i < TINY_WRITES; i++) putc('x', stream);
    syscall(SYS_getppid);
    dprintf(2, "fclose %d", fclose(stream) ? errno : 0);
}

/* A child that shares this memory writes, and is killed without a further system call. */
static void vfork_killed(void) {
    if (!vfork()) {
        write_each(1);
        *(volatile int *)8 = 1;
    }
    wait(NULL);
    write_each(1);
}

int main(int count, char **words) {
    const char *how = count > 1 ? words[1] : "";
    signal(SIGXFSZ, SIG_IGN);
    if (!strcmp(how, "vfork")) return vfork_killed(), 0;
    if (!strcmp(how, "awaits")) {
        char byte;
        if (read(0, &byte, 1) != 1) return 1;
        return write_each(1), 0;
    }
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){LIMIT, LIMIT});
    if (!strcmp(how, "many")) fail_in_many();
    else if (!strcmp(how, "stream")) close_stream();
    else if (!strcmp(how, "exit")) fill("first");
    else replace(how);
    return 0;
}
