/* stale.c: the bounded delay (weir_options.stale_ms). One timer thread per process writes out pending
 * bytes; the program's threads only append.
 *
 * A stream with nothing pending is not armed: its limits are 0, so the next append takes the slow path,
 * which arms it (weir__stale_arm) and raises the limits. The timer then checks the stream once per period,
 * writes complete bytes, and disarms it after two checks with nothing pending. A thread that was preempted
 * between its load of the limit and its store of the offset may publish a byte after that. The timer
 * therefore continues its checks, each after twice the time of the one before, up to a second: such a byte
 * stays pending about as long as its thread was stopped, but not longer than a second. */
#include "private.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MS INT64_C(1000000)
#define HEARTBEAT (1000 * MS)
#define RETRY_LOCKED (MS / 2)  /* the first retry delays: another thread has the lock */
#define SHORT_RETRIES 4        /* then each delay is twice the one before, up to the stream's period */
#define RETRY_BLOCKED (5 * MS) /* retry delay: the reader is slow, or another process has locked the file */
#define NEVER INT64_MAX

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000 * MS + time.tv_nsec;
}

/* Shorter than the promised delay, to allow for the wake-up latency. */
static int64_t period_of(const weir_stream *s)
{
    int64_t period = (int64_t)__atomic_load_n(&weir__config(s)->stale_ms, __ATOMIC_RELAXED) * MS;
    return period - (period / 4 < 2 * MS ? period / 4 : 2 * MS);
}

/* Returns whether a write would block. The timer must not block, because other streams have deadlines
 * too. */
static bool would_block(const weir_stream *s)
{
    const struct weir__config *config = weir__config(s);
    if (config->fd < 0 || config->regular)
        return false;
    struct pollfd ready = {.fd = config->fd, .events = POLLOUT};
    return weir__kernel.poll(&ready, 1, 0) == 0; /* errors are reported by the write */
}

/* Returns how many bytes a descriptor that poll(2) reports as writable takes without blocking. */
static uint64_t nonblocking_part(const weir_stream *s, uint64_t upto)
{
    const struct weir__config *config = weir__config(s);
    uint64_t bytes = upto - weir__drained(s);
    if (config->fd < 0 || config->regular || bytes <= PIPE_BUF)
        return bytes;
    if (config->mode == WEIR_RECORD)
        return weir__whole_records(s, config->buffer + weir__drained(s), bytes);
    return PIPE_BUF;
}

/* Writes the bytes that are complete now, without a reset. Returns the time of the next check. */
static int64_t drain_stale(weir_stream *s, int64_t time)
{
    struct weir__state *state = weir__state(s);
    /* acquire: the bytes below the offset are visible */
    uint64_t upto = __atomic_load_n(&weir__head(s)->written, __ATOMIC_ACQUIRE) - weir__head(s)->base;
    int flight = weir__config(s)->uring ? weir__uring_resume(s) : 0;
    if (flight)
        return flight > 0 ? time + RETRY_BLOCKED : time + HEARTBEAT;
    while (weir__drained(s) < upto) {
        if (would_block(s))
            return time + RETRY_BLOCKED;
        int result = weir__write_out_now(s, weir__drained(s) + nonblocking_part(s, upto));
        if (result < 0)
            return result == -EAGAIN ? time + RETRY_BLOCKED : time + HEARTBEAT;
    }
    state->stats.stale_drains++;
    state->idle_ticks = 0;
    return state->deadline = time + period_of(s);
}

/* Returns the time of the next check of a stream that is not armed and has nothing pending. */
static int64_t check_later(weir_stream *s, int64_t time)
{
    struct weir__state *state = weir__state(s);
    if (time < state->deadline)
        return state->deadline;
    int64_t wait = state->quiet_ns ? state->quiet_ns * 2 : period_of(s);
    state->quiet_ns = wait < HEARTBEAT ? wait : HEARTBEAT;
    return state->deadline = time + state->quiet_ns;
}

/* Returns the delay before the next attempt to lock the stream. */
static int64_t retry_delay(weir_stream *s)
{
    unsigned attempt = weir__state(s)->failed_locks++;
    int64_t delay = RETRY_LOCKED, most = period_of(s);
    for (unsigned i = SHORT_RETRIES; i <= attempt && delay < most; i++)
        delay *= 2;
    return attempt >= SHORT_RETRIES && delay > most ? most : delay;
}

/* Returns the time of the stream's next check. The caller holds the lock. */
static int64_t check_stream(weir_stream *s, int64_t time)
{
    struct weir__state *state = weir__state(s);
    if (s->magic != WEIR_STREAM_MAGIC || state->error)
        return time + HEARTBEAT;
    if (state->armed && time < state->deadline)
        return state->deadline;
    if (weir__drained(s) < weir__written(s) || (weir__config(s)->uring && weir__uring_remaining(s, false)))
        return drain_stale(s, time);
    if (!state->armed)
        return check_later(s, time);
    if (++state->idle_ticks < 2)
        return state->deadline = time + period_of(s);
    state->armed = false;
    weir__set_limits(s);
    state->deadline = state->quiet_ns = 0;
    return check_later(s, time);
}

/* Returns the next stream and protects it from weir__unregister until the next call. */
static weir_stream *next_for_timer(size_t *slot)
{
    weir__registry_lock();
    weir_stream *s = weir__next_stream(slot);
    atomic_store(&weir__globals->timer_stream, s);
    weir__registry_unlock();
    return s;
}

/* Returns the time of the stream's next check. */
static int64_t lock_and_check(weir_stream *s)
{
    struct weir__state *state = weir__state(s);
    if (!__atomic_load_n(&weir__config(s)->stale_ms, __ATOMIC_RELAXED) || !weir__config(s)->sink->write)
        return NEVER;
    if (!weir__trylock(&state->lock))
        return now() + retry_delay(s);
    state->failed_locks = 0;
    int64_t check_at = check_stream(s, now());
    weir__unlock(&state->lock);
    return check_at;
}

static int64_t check_all(void)
{
    weir_stream *s;
    int64_t next = NEVER;
    for (size_t slot = 0; (s = next_for_timer(&slot)) != NULL;) {
        int64_t check_at = lock_and_check(s);
        next = check_at < next ? check_at : next;
    }
    atomic_store(&weir__globals->timer_stream, NULL);
    return next;
}

static void sleep_until(int64_t next, uint32_t wake_value)
{
    int64_t left = next == NEVER ? NEVER : next - now();
    if (left <= 0)
        return;
    struct timespec time = {left / (1000 * MS), left % (1000 * MS)};
    syscall(SYS_futex, &weir__globals->timer_wake, FUTEX_WAIT_PRIVATE, wake_value,
            next == NEVER ? NULL : &time, NULL, 0);
}

static void *timer(void *unused)
{
    (void)unused;
    for (;;) {
        uint32_t wake_value = atomic_load(&weir__globals->timer_wake);
        /* 0: threads that arm a stream need not wake this one; they change the futex word. */
        atomic_store(&weir__globals->timer_next, 0);
        int64_t next = check_all();
        atomic_store(&weir__globals->timer_next, next);
        sleep_until(next, wake_value);
    }
    return NULL;
}

/* Creates the timer thread with all signals blocked: they are for the program's threads. */
static int start_timer(void)
{
    pthread_t thread;
    pthread_attr_t attributes;
    sigset_t all, before;
    uint32_t no = 0;
    if (!atomic_compare_exchange_strong(&weir__globals->timer_started, &no, 1))
        return 0;
    weir__stay_loaded();
    sigfillset(&all);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&thread, &attributes, timer, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (error)
        atomic_store(&weir__globals->timer_started, 0);
    return -error;
}

int weir__stale_arm(weir_stream *s)
{
    struct weir__state *state = weir__state(s);
    int result = start_timer();
    if (result < 0)
        return result;
    state->armed = true;
    state->idle_ticks = 0;
    state->deadline = now() + period_of(s);
    weir__set_limits(s);
    atomic_fetch_add(&weir__globals->timer_wake, 1);
    if (state->deadline < atomic_load(&weir__globals->timer_next))
        syscall(SYS_futex, &weir__globals->timer_wake, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    return 0;
}

void weir__stale_wait(const weir_stream *s)
{
    struct timespec moment = {0, 50000};
    while (atomic_load(&weir__globals->timer_stream) == s)
        nanosleep(&moment, NULL);
}
