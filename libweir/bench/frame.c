/* frame.c: runs one contender and prints its times and units in one line; the start of the process is not measured. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "frame.h"

struct instant {
    int64_t user, system, cpu, elapsed; /* nanoseconds */
};

static int64_t clock_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static int64_t timeval_ns(struct timeval t) { return (t.tv_sec * INT64_C(1000000) + t.tv_usec) * 1000; }

static struct instant now(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (struct instant){ timeval_ns(usage.ru_utime), timeval_ns(usage.ru_stime),
                             clock_ns(CLOCK_PROCESS_CPUTIME_ID), clock_ns(CLOCK_MONOTONIC) };
}

_Noreturn static void fail(const char *what)
{
    perror(what);
    exit(1);
}

int open_in(const struct work *work)
{
    int fd = open(work->in, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        fail(work->in);
    return fd;
}

int open_out(const struct work *work)
{
    int fd = open(work->out, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        fail(work->out);
    return fd;
}

char *make_block(size_t bytes)
{
    enum { PAGE = 4096 };
    void *block = aligned_alloc(PAGE, (bytes + PAGE - 1) / PAGE * PAGE);
    if (!block)
        fail("aligned_alloc");
    return block;
}

static void *idle(void *unused)
{
    for (;;)
        pause();
    return unused;
}

static const struct contender *find(const char *job, const char *name)
{
    const struct contender *c = contenders;
    while (c->name && (strcmp(c->job, job) != 0 || strcmp(c->name, name) != 0))
        c++;
    return c->name ? c : NULL;
}

int main(int argc, char **argv)
{
    if (argc != 9) {
        fprintf(stderr, "usage: %s JOB NAME IN OUT COUNT BUFFER_BYTES PASSES IDLE_THREADS\n", argv[0]);
        return 2;
    }
    const struct contender *contender = find(argv[1], argv[2]);
    if (!contender) {
        fprintf(stderr, "%s: job %s has no contender %s\n", argv[0], argv[1], argv[2]);
        return 2;
    }
    struct work work = { argv[3], argv[4], atol(argv[5]), strtoul(argv[6], NULL, 10) };
    pthread_t thread;
    for (int i = atoi(argv[8]); i > 0; i--)
        if (pthread_create(&thread, NULL, idle, NULL) != 0)
            fail("pthread_create");
    long units = 0;
    struct instant start = now();
    for (long pass = atol(argv[7]); pass > 0; pass--) {
        long done = contender->run(&work);
        if (done < 0)
            fail(argv[2]);
        units += done;
    }
    struct instant end = now();
    printf("%lld %lld %lld %lld %ld\n", (long long)(end.user - start.user),
           (long long)(end.system - start.system), (long long)(end.cpu - start.cpu),
           (long long)(end.elapsed - start.elapsed), units);
    return 0;
}
