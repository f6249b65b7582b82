/* private_stdin.c: with stdin-private, programs that the command starts do not read the input of their parents.

   A new program gets /dev/null as descriptor 0
   - if that is the command's own standard input, inherited from its parent (private_stdin_start), or
   - if descriptor 0 is an open file that a parent has read from by its own read(2), as a shell does in `while read x; do …;
     done < file` (private_stdin_exec in a forked child, private_stdin_spawn around posix_spawn, system and popen). `{ head -1;
     cat; } < file` keeps the file, because the shell itself reads nothing.

   It follows open files through dup(2), fcntl(2) and close(2), which it therefore exports. */
#include "functions.h"

#include <asm/stat.h>

#include "config.h"
#include "gather.h"
#include "libc.h"

enum { MADV_WIPE_ON_FORK = 18, KCMP_FILE = 0, FDS = 256, DUP_FD = 0, DUP_FD_CLOEXEC = 1030, ERR_BAD_FD = -9 };

/* For each descriptor: the PID of the process that read its open file as descriptor 0; 0: none. A fork copies the table,
   dup(2) and its like copy entries, so an entry follows the open file. */
static int32_t readers[FDS];

/* The process that owns this memory. The kernel zeroes the page in a forked child. A child of vfork, which has its own
   descriptors and its parent's memory, finds its parent here. */
static volatile long *owner;

static int owns_memory(void) {
    long pid = sys0(__NR_getpid);
    if (!owner) return 0;
    if (!*owner) *owner = pid;
    return *owner == pid;
}

static void start_owner(void) {
    owner = sys_pages(4096);
    if (owner && sys3(__NR_madvise, owner, 4096, MADV_WIPE_ON_FORK) < 0) {
        sys2(__NR_munmap, owner, 4096);
        owner = NULL;
    }
    owns_memory();
}

/* Reads the state of a descriptor: position, flags, mount and inode. Returns its length, 0 on failure. */
static long read_state(long pid, int fd, char *to, size_t room) {
    char path[64];
    char *end = text_put(path, "/proc/", 6);
    end = text_put_number(end, (uint64_t)pid);
    end = text_put(end, "/fdinfo/", 8);
    *text_put_number(end, (uint64_t)fd) = 0;
    long file = sys_open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    long n = sys_read((int)file, to, room);
    sys_close((int)file);
    return n > 0 ? n : 0;
}

/* Compares descriptor 0 with one of another process. Without kcmp(2), descriptors of one inode at one position count as
   the same open file. Returns 1: the same open file, 0: another, negative: the other process has no such descriptor. */
static long same_open_file(long pid, int fd) {
    char own[512], other[512];
    long order = sys5(__NR_kcmp, sys0(__NR_getpid), pid, KCMP_FILE, 0, fd);
    if (order >= 0) return order == 0;
    if (order == ERR_BAD_FD) return order;
    long n = read_state(sys0(__NR_getpid), 0, own, sizeof own);
    if (!n || read_state(pid, fd, other, sizeof other) != n) return 0;
    return span_same((struct span){own, (size_t)n}, (struct span){other, (size_t)n});
}

/* Returns whether the parent has this open file too; 1 also if the parent is PID 1 or not visible. */
static int is_inherited(void) {
    long parent = sys0(__NR_getppid);
    for (int fd = 0; parent > 1 && fd < FDS; fd++)
        if (same_open_file(parent, fd) == 1) return 1;
    return parent <= 1;
}

static int is_first(void) {
    return sys0(__NR_getppid) == config.first_pid;
}

static void give_null(void) {
    long null = sys_open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null < 0) return;
    sys3(__NR_dup3, null, 0, 0);
    sys_close((int)null);
}

void private_stdin_start(void) {
    struct stat now;
    if (!config.private_stdin) return;
    start_owner();
    if (is_first() || sys2(__NR_fstat, 0, &now) < 0) return;
    if (now.st_dev == config.private_dev && now.st_ino == config.private_ino && is_inherited()) give_null();
}

void private_stdin_note_read(void) {
    if (config.private_stdin && !readers[0] && owns_memory()) readers[0] = (int32_t)sys0(__NR_getpid);
}

/* Replaces descriptor 0 and returns its duplicate. */
static int replace(void) {
    long saved = sys3(__NR_fcntl, 0, DUP_FD_CLOEXEC, 10);
    if (saved >= 0) give_null();
    return (int)saved;
}

int private_stdin_exec(void) {
    if (!config.private_stdin || !readers[0] || readers[0] == sys0(__NR_getpid)) return -1;
    /* In a child of vfork the table is the parent's, whose descriptor 0 may be another one. */
    if (!owns_memory() && (!owner || same_open_file(*owner, 0) != 1)) return -1;
    return replace();
}

/* The child of such a call starts in libc, so this process's own descriptor 0 is replaced until it has started. Another
   thread could read it meanwhile. */
int private_stdin_spawn(void) {
    if (!config.private_stdin || !readers[0] || !owns_memory() || !threads_single()) return -1;
    /* With FD_CLOEXEC the child would have no descriptor 0 anyway. */
    return sys3(__NR_fcntl, 0, F_GETFD, 0) == 0 ? replace() : -1;
}

void private_stdin_restore(int saved) {
    if (saved < 0) return;
    sys3(__NR_dup3, saved, 0, 0);
    sys_close(saved);
}

/* Gives `to` the entry of `from`; none if `from` is negative. */
static void copy_entry(int from, long to) {
    if (!config.private_stdin || to < 0 || to >= FDS || !owns_memory()) return;
    readers[to] = from >= 0 && from < FDS ? readers[from] : 0;
}

EXPORT int dup(int fd);
EXPORT int dup(int fd) {
    int (*call)(int) = NEXT("dup");
    int to = call ? call(fd) : (int)result(sys1(__NR_dup, fd));
    copy_entry(fd, to);
    return to;
}

/* Notes after dup2(2) that `to` refers to another open file. */
static void note_replaced(int fd, int to) {
    copy_entry(fd, to);
    if (fd != to) gather_forget_late_errors((unsigned)to, (unsigned)to);
}

EXPORT int dup2(int fd, int to);
EXPORT int dup2(int fd, int to) {
    int (*call)(int, int) = NEXT("dup2");
    int got = call ? call(fd, to) : fail(-38);
    if (got >= 0) note_replaced(fd, to);
    return got;
}

EXPORT int dup3(int fd, int to, int flags);
EXPORT int dup3(int fd, int to, int flags) {
    int (*call)(int, int, int) = NEXT("dup3");
    int got = call ? call(fd, to, flags) : (int)result(sys3(__NR_dup3, fd, to, flags));
    if (got >= 0) note_replaced(fd, to);
    return got;
}

EXPORT int close(int fd);
EXPORT int close(int fd) {
    int (*call)(int) = NEXT("close");
    int late = gather_take_late_error(fd);
    copy_entry(-1, fd);
    int status = call ? call(fd) : (int)result(sys_close(fd));
    return late ? fail(-late) : status;
}

typedef int fcntl_call(int, int, ...);
static int duplicate(fcntl_call *call, int fd, int command, long argument) {
    int got = call ? call(fd, command, argument) : (int)result(sys3(__NR_fcntl, fd, command, argument));
    if (command == DUP_FD || command == DUP_FD_CLOEXEC) copy_entry(fd, got);
    return got;
}

/* The third argument is an int, a long or a pointer, or is absent: each is passed as a long. */
EXPORT int fcntl(int fd, int command, long argument);
EXPORT int fcntl(int fd, int command, long argument) {
    return duplicate((fcntl_call *)NEXT("fcntl"), fd, command, argument);
}

EXPORT int fcntl64(int fd, int command, long argument);
EXPORT int fcntl64(int fd, int command, long argument) {
    fcntl_call *call = (fcntl_call *)NEXT("fcntl64");
    return duplicate(call ? call : (fcntl_call *)NEXT("fcntl"), fd, command, argument);
}
