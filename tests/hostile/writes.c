/* writes KIND [PATH]: leaves "payload " pending in a stream and prints "ready". A line of input ends it: the stream then
 * gets "end" and is flushed by exit(3).
 * KIND: file (an existing file), socket (datagrams), pipe (no reader), filtered (a file, under two seccomp filters),
 * refused (as filtered, but a filter kills the writer of the file). */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

/* A filter that allows every call, and one that kills the process for a write(2) to descriptor `fd`. */
static int filter(int fd)
{
    struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_filter judge[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_write, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)fd, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog all = {.len = 1, .filter = &allow};
    struct sock_fprog some = {.len = sizeof judge / sizeof *judge, .filter = judge};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all) ||
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &some);
}

static int open_socket(const char *path)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    strncpy(to.sun_path, path, sizeof to.sun_path - 1);
    return connect(fd, (struct sockaddr *)&to, sizeof to) ? -1 : fd;
}

static int open_pipe(void)
{
    int ends[2];
    if (pipe(ends))
        return -1;
    close(ends[0]);
    return ends[1];
}

int main(int argc, char **argv)
{
    const char *kind = argc > 1 ? argv[1] : "", *path = argc > 2 ? argv[2] : "";
    int is_socket = !strcmp(kind, "socket"), is_pipe = !strcmp(kind, "pipe");
    int fd = is_socket ? open_socket(path) : is_pipe ? open_pipe() : open(path, O_WRONLY);
    FILE *stream = fd < 0 ? NULL : fdopen(fd, "w");
    if (!stream || (!strcmp(kind, "filtered") && filter(-1)) || (!strcmp(kind, "refused") && filter(fd)))
        return perror(path), 1;
    signal(SIGXFSZ, SIG_DFL);
    fputs("payload ", stream);
    puts("ready");
    fflush(stdout);
    if (getchar() == EOF)
        return 2;
    fputs("end", stream);
    return fclose(stream) ? 3 : 0;
}
