/* litmus.c: the orders of memory accesses on which the protocol of threads relies, each as two threads that run a few
 * instructions at the same time, again and again. ../model executes the same protocol in every order of the C11 memory
 * model; here the processor's orders are tried. An emulator on x86-64 shows only those of x86-64 as well.
 * --ms=N: milliseconds per test (300). */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>

#include "../src/private.h"
#include "support/check.h"

enum { CELLS = 1024 }; /* a turn runs the instructions on this many independent cells, so that the threads drift */

static double seconds;
static _Atomic uint32_t arrived;
static _Atomic bool stop;

/* Returns when both threads have called it `turn` times. */
static void meet(uint32_t turn)
{
    atomic_fetch_add(&arrived, 1);
    for (int i = 0; atomic_load(&arrived) < 2 * turn; i++)
        if (i > 1000)
            sched_yield();
}

struct litmus {
    const char *name;
    void (*first)(int cell), (*second)(int cell);
    bool (*forbidden)(int cell); /* after both, in the first thread; then prepares the cell for the next turn */
};

static const struct litmus *current;

static void *run_second(void *unused)
{
    for (uint32_t turn = 1;; turn += 3) {
        meet(turn);
        if (stop)
            return unused;
        for (int cell = 0; cell < CELLS; cell++)
            current->second(cell);
        meet(turn + 1);
        meet(turn + 2);
    }
}

/* Returns how often the forbidden outcome was seen. */
static uint64_t count_forbidden(const struct litmus *litmus, uint64_t *turns)
{
    pthread_t thread;
    uint64_t seen = 0;
    double end = seconds_now() + seconds;
    current = litmus;
    stop = false;
    arrived = 0;
    for (int cell = 0; cell < CELLS; cell++)
        litmus->forbidden(cell);
    pthread_create(&thread, NULL, run_second, NULL);
    *turns = 0;
    for (uint32_t turn = 1;; turn += 3, *turns += CELLS) {
        stop = seconds_now() > end;
        meet(turn);
        if (stop)
            break;
        for (int cell = 0; cell < CELLS; cell++)
            litmus->first(cell);
        meet(turn + 1);
        for (int cell = 0; cell < CELLS; cell++)
            seen += litmus->forbidden(cell);
        meet(turn + 2);
    }
    pthread_join(thread, NULL);
    return seen;
}

/* Each in a cache line of its own. */
static struct cell {
    _Alignas(64) uint64_t byte;
    _Alignas(64) uint64_t offset;
    _Alignas(64) struct weir__lock lock;
    _Alignas(64) _Atomic int x;
    _Alignas(64) _Atomic int y;
    _Alignas(64) uint64_t seen_offset, seen_byte;
    uintptr_t seen_owner;
    weir_stream *stream;
    uint32_t seen_calls;
    int seen_x;
    _Alignas(64) int seen_y;
    bool wakes, locked;
} cells[CELLS];

/* ---- a byte and the published offset ---- */

static void publish(int i)
{
    WEIR_STORE(&cells[i].byte, 'x');
    WEIR_PUBLISH(&cells[i].offset, 1);
}

static void drain(int i)
{
    cells[i].seen_offset = __atomic_load_n(&cells[i].offset, __ATOMIC_ACQUIRE);
    cells[i].seen_byte = WEIR_LOAD(&cells[i].byte);
}

static bool is_unseen_byte(int i)
{
    struct cell *c = &cells[i];
    bool forbidden = c->seen_offset == 1 && c->seen_byte != 'x';
    c->seen_offset = c->offset = c->byte = 0;
    return forbidden;
}

/* ---- the release of the lock and its waiter ---- */

static void release(int i) { cells[i].wakes = !weir__lock_release_fast(&cells[i].lock); }

static void wait_for_release(int i)
{
    atomic_fetch_add(&cells[i].lock.waiters, 1);
    weir__membarrier_all();
    cells[i].seen_owner = atomic_load(&cells[i].lock.owner);
}

static bool is_lost_wakeup(int i)
{
    struct cell *c = &cells[i];
    bool forbidden = !c->wakes && c->seen_owner;
    atomic_store(&c->lock.owner, weir__this_thread());
    atomic_store(&c->lock.waiters, 0);
    c->wakes = true;
    return forbidden;
}

/* ---- a call without a lock and the flush of another thread ---- */

static void enter(int i)
{
    weir__enter(cells[i].stream);
    cells[i].locked = atomic_load(&weir__state(cells[i].stream)->in_call) == 0;
}

static void begin_flush(int i)
{
    weir__set_locking(cells[i].stream);
    weir__membarrier_all();
    cells[i].seen_calls = atomic_load(&weir__state(cells[i].stream)->in_call);
}

static bool is_unseen_call(int i)
{
    struct cell *c = &cells[i];
    struct weir__state *state = weir__state(c->stream);
    bool entered = c->locked || atomic_load(&state->in_call);
    bool forbidden = entered && !c->locked && c->seen_calls == 0;
    if (entered)
        weir__leave(c->stream);
    c->locked = false;
    weir__config(c->stream)->locking = false;
    __atomic_store_n(&state->locking, false, __ATOMIC_RELEASE);
    return forbidden;
}

/* ---- without a barrier: shows whether the threads really meet ---- */

static void store_x(int i)
{
    atomic_store_explicit(&cells[i].x, 1, memory_order_relaxed);
    cells[i].seen_y = atomic_load_explicit(&cells[i].y, memory_order_relaxed);
}

static void store_y(int i)
{
    atomic_store_explicit(&cells[i].y, 1, memory_order_relaxed);
    cells[i].seen_x = atomic_load_explicit(&cells[i].x, memory_order_relaxed);
}

static bool is_reordered(int i)
{
    struct cell *c = &cells[i];
    bool reordered = !c->seen_x && !c->seen_y;
    c->x = c->y = 0;
    c->seen_x = c->seen_y = 1;
    return reordered;
}

static const struct litmus tests[] = {
    {"a published offset makes its byte visible", publish, drain, is_unseen_byte},
    {"a released lock is seen, or its waiter is", release, wait_for_release, is_lost_wakeup},
    {"a call without a lock is seen, or it locks", enter, begin_flush, is_unseen_call},
};

int main(int count, char **arguments)
{
    static const struct litmus control = {"no barrier", store_x, store_y, is_reordered};
    uint64_t turns;
    seconds = (double)check_option(count, arguments, "ms", 300) / 1000;
    for (int i = 0; i < CELLS; i++)
        weir_open_collector(&cells[i].stream, NULL);
    weir__membarrier_register();
    uint64_t reordered = count_forbidden(&control, &turns);
    printf("without a barrier: %llu of %llu had stores and loads in another order\n", (unsigned long long)reordered,
           (unsigned long long)turns);
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        check_begin("%s", tests[i].name);
        uint64_t seen = count_forbidden(&tests[i], &turns);
        check(seen == 0 && turns > 0, "%llu of %llu times", (unsigned long long)seen, (unsigned long long)turns);
        printf("  %llu times\n", (unsigned long long)turns);
    }
    for (int i = 0; i < CELLS; i++)
        weir_close(cells[i].stream);
    return check_finish("litmus");
}
