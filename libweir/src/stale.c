/* stale.c: the bounded delay. One thread a process looks at the streams that have one; the program's own
 * threads only ever append.
 *
 * A stream that nobody waits for is not armed: its limits are down, so its next byte takes the long way,
 * which arms it (weir__stale_arm) and puts the limits up. From then on the timer comes once a period,
 * writes out what is complete, and disarms the stream when it found nothing twice in a row. A thread that
 * was stopped between its look at the limit and its store of the offset may publish a byte after that:
 * the timer therefore looks at every such stream once a second all the same. */
#include "private.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MS INT64_C(1000000)
#define HEARTBEAT (1000 * MS)
#define BUSY (MS / 2)         /* the stream was locked: again soon */
#define NOT_WRITABLE (5 * MS) /* its reader is slow */
#define NEVER INT64_MAX

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000 * MS + time.tv_nsec;
}

/* Less than the delay that was promised by what waking up may take. */
static int64_t period_of(const weir_stream *s)
{
    int64_t period = (int64_t)weir__own(s)->stale_ms * MS;
    return period - (period / 4 < 2 * MS ? period / 4 : 2 * MS);
}

/* Never waits for who reads at the other end: other streams' time is running as well. */
static bool would_block(const weir_stream *s)
{
    const struct weir__own *own = weir__own(s);
    if (own->fd < 0 || own->regular)
        return false;
    struct pollfd ready = {.fd = own->fd, .events = POLLOUT};
    return weir__kernel.poll(&ready, 1, 0) == 0; /* an error there is one that writing will report */
}

/* As much as a descriptor that poll(2) says is ready takes without waiting. */
static uint64_t part_of(const weir_stream *s, uint64_t upto)
{
    const struct weir__own *own = weir__own(s);
    uint64_t bytes = upto - weir__drained(s);
    if (own->fd < 0 || own->regular || bytes <= PIPE_BUF)
        return bytes;
    if (own->mode == WEIR_RECORD)
        return weir__whole_records(s, own->buffer + weir__drained(s), bytes);
    return PIPE_BUF;
}

/* The timer's way out: what is complete now, without moving anything. */
static int64_t drain(weir_stream *s, int64_t time)
{
    struct weir__hot *hot = weir__hot(s);
    uint64_t upto = __atomic_load_n(&weir__head(s)->written, __ATOMIC_ACQUIRE) - weir__head(s)->base; /* and the bytes below it */
    size_t none = 0;
    int flight = weir__own(s)->uring ? weir__uring_resume(s) : 0;
    if (flight)
        return flight > 0 ? time + NOT_WRITABLE : time + HEARTBEAT;
    while (weir__drained(s) < upto) {
        if (would_block(s))
            return time + NOT_WRITABLE;
        int result = weir__write_out(s, weir__drained(s) + part_of(s, upto), NULL, 0, &none);
        if (result < 0)
            return result == -EAGAIN ? time + NOT_WRITABLE : time + HEARTBEAT;
    }
    hot->stats.stale_drains++;
    hot->idle_ticks = 0;
    return hot->deadline = time + period_of(s);
}

/* Returns when to look at the stream again. The lock is held. */
static int64_t visit(weir_stream *s, int64_t time)
{
    struct weir__hot *hot = weir__hot(s);
    if (s->magic != WEIR_STREAM_MAGIC || hot->error)
        return time + HEARTBEAT;
    if (hot->armed && time < hot->deadline)
        return hot->deadline;
    if (weir__drained(s) < weir__written(s) || (weir__own(s)->uring && weir__uring_left(s, false)))
        return drain(s, time);
    if (!hot->armed)
        return time + HEARTBEAT;
    if (++hot->idle_ticks < 2)
        return hot->deadline = time + period_of(s);
    hot->armed = false;
    weir__set_limits(s);
    return time + HEARTBEAT;
}

/* The next stream in its slot, held against weir__unregister until the next call. */
static weir_stream *hold_next(size_t *slot)
{
    weir__registry_lock();
    weir_stream *s = weir__next_stream(slot);
    atomic_store(&weir__globals->timer_holds, s);
    weir__registry_unlock();
    return s;
}

static int64_t look_at_all(void)
{
    weir_stream *s;
    int64_t next = NEVER;
    for (size_t slot = 0; (s = hold_next(&slot)) != NULL;) {
        int64_t again = NEVER;
        if (__atomic_load_n(&weir__own(s)->stale_ms, __ATOMIC_RELAXED) && weir__own(s)->sink->write) {
            again = now() + BUSY;
            if (weir__trylock(&weir__hot(s)->lock)) {
                again = visit(s, now());
                weir__unlock(&weir__hot(s)->lock);
            }
        }
        next = again < next ? again : next;
    }
    atomic_store(&weir__globals->timer_holds, NULL);
    return next;
}

static void sleep_until(int64_t next, uint32_t seen)
{
    int64_t left = next == NEVER ? NEVER : next - now();
    if (left <= 0)
        return;
    struct timespec time = {left / (1000 * MS), left % (1000 * MS)};
    syscall(SYS_futex, &weir__globals->timer_wake, FUTEX_WAIT_PRIVATE, seen, next == NEVER ? NULL : &time, NULL, 0);
}

static void *timer(void *unused)
{
    (void)unused;
    for (;;) {
        uint32_t seen = atomic_load(&weir__globals->timer_wake);
        atomic_store(&weir__globals->timer_next, 0); /* who arms a stream now need not wake us: `seen` tells */
        int64_t next = look_at_all();
        atomic_store(&weir__globals->timer_next, next);
        sleep_until(next, seen);
    }
    return NULL;
}

/* It takes no signal: those are for the program's threads. */
static int start_timer(void)
{
    pthread_t thread;
    pthread_attr_t attributes;
    sigset_t all, before;
    uint32_t no = 0;
    if (!atomic_compare_exchange_strong(&weir__globals->timer_runs, &no, 1))
        return 0;
    sigfillset(&all);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&thread, &attributes, timer, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (error)
        atomic_store(&weir__globals->timer_runs, 0);
    return -error;
}

int weir__stale_arm(weir_stream *s)
{
    struct weir__hot *hot = weir__hot(s);
    int result = start_timer();
    if (result < 0)
        return result;
    hot->armed = true;
    hot->idle_ticks = 0;
    hot->deadline = now() + period_of(s);
    weir__set_limits(s);
    atomic_fetch_add(&weir__globals->timer_wake, 1);
    if (hot->deadline < atomic_load(&weir__globals->timer_next))
        syscall(SYS_futex, &weir__globals->timer_wake, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    return 0;
}

/* The timer may be at it: it lets go before its next stream. */
void weir__stale_forget(const weir_stream *s)
{
    struct timespec moment = {0, 50000};
    while (atomic_load(&weir__globals->timer_holds) == s)
        nanosleep(&moment, NULL);
}
