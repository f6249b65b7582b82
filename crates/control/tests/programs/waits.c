/* Prints the time ten times a second into a large buffer. Between the lines it blocks in the call that argv[2] names,
   until a child ends the call. Fails if the call returns EINTR. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int pair[2];
static int listener;
static struct sockaddr_un name = {.sun_family = AF_UNIX};
static socklen_t name_bytes = sizeof(sa_family_t);

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void end_call(const char *call) {
    usleep(50000);
    kill(getppid(), SIGURG); /* ignored by default: without a tracer it ends no call */
    usleep(50000);
    if (strcmp(call, "accept") == 0) {
        int end = socket(AF_UNIX, SOCK_STREAM, 0);
        if (connect(end, (struct sockaddr *)&name, name_bytes) < 0) _exit(1);
        close(end);
    } else if (strcmp(call, "sigwait") == 0) {
        kill(getppid(), SIGUSR1);
    } else if (write(pair[1], "x", 1) != 1) {
        _exit(1);
    }
}

/* Blocks in the call. Returns -1 if it failed. */
static int await(const char *call, int epoll, const sigset_t *signals) {
    struct epoll_event event;
    char byte;
    if (strcmp(call, "accept") == 0) {
        int end = accept(listener, NULL, NULL);
        return end < 0 ? -1 : close(end);
    }
    if (strcmp(call, "sigwait") == 0) return sigwaitinfo(signals, NULL);
    if (strncmp(call, "epoll", 5) == 0) {
        int milliseconds = strcmp(call, "epoll-timed") == 0 ? 5000 : -1;
        if (epoll_wait(epoll, &event, 1, milliseconds) != 1) return -1;
    }
    return (int)(strcmp(call, "read") == 0 ? read(pair[0], &byte, 1) : recv(pair[0], &byte, 1, 0));
}

int main(int count, char **words) {
    static char buffer[1 << 16];
    if (count < 3) return 2;
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    listener = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&name, name_bytes) < 0 || listen(listener, 5) < 0) return 3;
    name_bytes = sizeof name;
    getsockname(listener, (struct sockaddr *)&name, &name_bytes);
    if (socketpair(AF_UNIX, strcmp(words[2], "recv") == 0 ? SOCK_DGRAM : SOCK_STREAM, 0, pair) < 0) return 3;
    int epoll = epoll_create1(0);
    epoll_ctl(epoll, EPOLL_CTL_ADD, pair[0], &(struct epoll_event){.events = EPOLLIN});
    for (long number = atol(words[1]); number > 0; number--) {
        pid_t child = fork();
        if (child == 0) {
            end_call(words[2]);
            _exit(0);
        }
        char line[64];
        snprintf(line, sizeof line, "at %.6f\n", now());
        for (char *at = line; *at; at++) putc_unlocked(*at, stdout);
        if (await(words[2], epoll, &signals) < 0) {
            fprintf(stderr, "%s: %s\n", words[2], strerror(errno));
            return 4;
        }
        waitpid(child, NULL, 0);
    }
    return 0;
}
