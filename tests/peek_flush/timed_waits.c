/* timed_waits.c: prints lines for the seconds of the first argument, while each other thread waits again and again with a timeout, in
 * its own call. Each prints to stderr: its name, how many waits ended at their timeout, how many of those ended early, and the longest
 * in milliseconds. The thread `events` gets an event in the middle of every second wait. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { TIMEOUT_MS = 500, EVENTS_TIMEOUT_MS = 300 };

static volatile int ends;
static int event_fd;

static double now_ms(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

/* Waits once in the call with this number. Returns 0 at its timeout, 1 at an event, -1 at an error. */
static int wait_once(long number, int set)
{
    struct timespec timeout = {0, TIMEOUT_MS * 1000000L};
    struct epoll_event event;
    sigset_t signals;
    int timeout_ms = number == 0 ? EVENTS_TIMEOUT_MS : TIMEOUT_MS;
    switch (number) {
    case SYS_rt_sigtimedwait:
        sigemptyset(&signals);
        sigaddset(&signals, SIGUSR2);
        return sigtimedwait(&signals, NULL, &timeout) < 0 && errno == EAGAIN ? 0 : -1;
    case SYS_epoll_pwait2:
        return (int)syscall(SYS_epoll_pwait2, set, &event, 1, &timeout, NULL, 8);
    case SYS_semtimedop: {
        struct sembuf take = {0, -1, 0};
        return semtimedop(set, &take, 1, &timeout) < 0 && errno == EAGAIN ? 0 : -1;
    }
    default:
        return epoll_wait(set, &event, 1, timeout_ms);
    }
}

struct waiter {
    const char *name;
    long number;
    int ended, early, failed;
    double longest_ms;
    pthread_t thread;
};

static void *waits(void *argument)
{
    struct waiter *waiter = argument;
    struct epoll_event readable = {.events = EPOLLIN};
    int set = waiter->number == SYS_semtimedop ? semget(IPC_PRIVATE, 1, 0600) : epoll_create1(0);
    double timeout_ms = waiter->number == 0 ? EVENTS_TIMEOUT_MS : TIMEOUT_MS;
    if (waiter->number == 0)
        epoll_ctl(set, EPOLL_CTL_ADD, event_fd, &readable);
    while (!ends) {
        double began = now_ms();
        int result = wait_once(waiter->number, set);
        double took = now_ms() - began;
        eventfd_t value;
        if (result > 0)
            eventfd_read(event_fd, &value);
        waiter->failed += result < 0;
        if (result != 0)
            continue;
        waiter->ended++;
        waiter->early += took < timeout_ms - 0.5;
        if (took > waiter->longest_ms)
            waiter->longest_ms = took;
    }
    if (waiter->number == SYS_semtimedop)
        semctl(set, 0, IPC_RMID);
    return NULL;
}

int main(int argc, char **argv)
{
    static struct waiter waiters[] = {
        {.name = "epoll_wait", .number = -1},
        {.name = "sigtimedwait", .number = SYS_rt_sigtimedwait},
        {.name = "epoll_pwait2", .number = SYS_epoll_pwait2},
        {.name = "semtimedop", .number = SYS_semtimedop},
        {.name = "events", .number = 0},
    };
    enum { WAITERS = sizeof waiters / sizeof *waiters };
    double end_ms = now_ms() + 1000 * (argc > 1 ? atof(argv[1]) : 1);
    event_fd = eventfd(0, 0);
    for (int i = 0; i < WAITERS; i++)
        pthread_create(&waiters[i].thread, NULL, waits, &waiters[i]);
    if (write(2, ".", 1) != 1)
        return 2;
    for (int i = 0; now_ms() < end_ms; i++) {
        printf("line %d\n", i);
        /* An event 440 ms after the last one: after one timeout of 300 ms and 140 ms of the next. */
        if (i % 44 == 0)
            eventfd_write(event_fd, 1);
        poll(NULL, 0, 10);
    }
    ends = 1;
    for (int i = 0; i < WAITERS; i++) {
        struct waiter *one = &waiters[i];
        pthread_join(one->thread, NULL);
        fprintf(stderr, "%s %d %d %d %.0f\n", one->name, one->ended, one->early, one->failed, one->longest_ms);
    }
    return 0;
}
