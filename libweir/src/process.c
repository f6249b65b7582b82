/* process.c: the hooks of fork(3), and the data of the whole process. Exit and exec: ending.c. */
#include "private.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

struct weir__globals *weir__globals;
static int init_result;

/* Locks the stream, so that the child's copy is in the state between two calls. A thread that is blocked in
 * a read leaves a consistent state; does not wait for it. */
static void lock_kept(weir_stream *s)
{
    struct weir__owner_wait owner_wait;
    weir__owner_wait_begin(&owner_wait);
    weir__lock_unless_reading(s, &owner_wait, true);
}

static void unlock_kept(weir_stream *s)
{
    if (weir__state(s)->lock.owner == weir__this_thread())
        weir__unlock(&weir__state(s)->lock);
}

/* Returns whether fork locks the stream. */
static bool is_kept(const weir_stream *s)
{
    return weir__config(s)->on_fork == WEIR_FORK_KEEP && weir__locking(s);
}

/* Locks streams that were opened since the others were locked. Returns false if another thread is in a call of one.
 * Requires the registry's lock, and therefore does not wait. */
static bool lock_new(void)
{
    weir_stream *s;
    bool all = true;
    for (size_t slot = 0; (s = weir__next_stream(&slot)) != NULL;) {
        struct weir__state *state = weir__state(s);
        bool is_new = is_kept(s) && atomic_load(&state->lock.owner) != weir__this_thread();
        if (is_new && !weir__trylock(&state->lock) && !atomic_load(&state->in_read))
            all = false;
    }
    return all;
}

/* Locks the registry, and the streams that other threads have opened meanwhile. */
static void lock_registry(void)
{
    enum { TIMES = 50 }; /* 10 ms in all; a stream whose lock stays held longer is left unlocked */
    struct timespec moment = {0, 200000};
    weir__registry_lock();
    for (int i = 0; i < TIMES && !lock_new(); i++) {
        weir__registry_unlock();
        nanosleep(&moment, NULL);
        weir__registry_lock();
    }
}

static void after_fork_in_parent(void);

/* Locks the streams before the registry, as exit does, and a thread that opens a stream between weir_lock and
 * weir_unlock. */
static void before_fork(void)
{
    weir_stream *s;
    int pid = (int)getpid(), cancel = weir__cancel_off();
    struct weir__owner_wait owner_wait;
    weir__owner_wait_begin(&owner_wait);
    for (size_t slot = 0; (s = weir__ref_next(&slot)) != NULL; weir__unref(s)) {
        struct weir__config *config = weir__config(s);
        bool flushes = config->on_fork == WEIR_FORK_FLUSH || config->share;
        if (!flushes || !weir__belongs_to(s, pid) || weir__is_writing(s) || !weir__enter_for_flush(s, &owner_wait))
            continue;
        weir__flush_in_place(s);
        weir__leave_after_flush(s);
    }
    for (size_t slot = 0; (s = weir__ref_next(&slot)) != NULL; weir__unref(s))
        if (is_kept(s))
            lock_kept(s);
    lock_registry();
    weir__cancel_restore(cancel);
    atomic_store(&weir__globals->forking, weir__this_thread());
    if (atomic_load(&weir__globals->hooks_end))
        after_fork_in_parent(); /* glibc may no longer call it: see weir__end_fork */
}

/* Does nothing if weir__end_fork has released the locks. */
static void after_fork_in_parent(void)
{
    weir_stream *s;
    uintptr_t self = weir__this_thread();
    if (!atomic_compare_exchange_strong(&weir__globals->forking, &self, 0))
        return;
    for (size_t slot = 0; (s = weir__next_stream(&slot)) != NULL;)
        if (is_kept(s))
            unlock_kept(s);
    weir__registry_unlock();
}

static void release_of(struct weir__lock *lock, uintptr_t thread)
{
    if (atomic_compare_exchange_strong(&lock->owner, &thread, 0) && atomic_load(&lock->waiters))
        weir__lock_release_slow(lock, 0);
}

void weir__end_fork(void)
{
    enum { TIMES = 1000 }; /* 1 s */
    struct timespec moment = {0, 1000000};
    weir_stream *s;
    atomic_store(&weir__globals->hooks_end, true);
    for (int i = 0; i < TIMES && atomic_load(&weir__globals->forking); i++)
        nanosleep(&moment, NULL);
    uintptr_t forking = atomic_exchange(&weir__globals->forking, 0);
    if (!forking)
        return;
    for (size_t slot = 0; (s = weir__next_stream(&slot)) != NULL;)
        if (is_kept(s))
            release_of(&weir__state(s)->lock, forking);
    release_of(&weir__globals->registry, forking);
}

static void after_fork_in_child(void)
{
    weir_stream *s;
    memset(weir__globals, 0, sizeof *weir__globals);
    weir__globals->pid = (int)getpid();
    weir__thread_mark.tid = 0;
    for (size_t slot = 0; (s = weir__next_stream(&slot)) != NULL;) {
        struct weir__config *config = weir__config(s);
        if (config->lock_file)
            weir__file_lock_close(s);
        if (config->on_fork != WEIR_FORK_KEEP) {
            if (s->magic) /* MADV_WIPEONFORK failed, or an emulator ignored it */
                weir__wipe(s);
            if (config->uring)
                weir__uring_close_in_child(s);
            if (config->spill)
                weir__spill_reinit(s); /* an inherited descriptor would keep the file's memory allocated */
            continue;
        }
        config->pid = (int)getpid();
        config->copied = true;
        weir__state(s)->inherited = weir__state(s)->stats.written_bytes + weir__pending(s) + weir__state(s)->record_bytes;
        memset(&weir__state(s)->lock, 0, sizeof weir__state(s)->lock);
        weir__state(s)->refs = 0;
        memset(&weir__state(s)->groups, 0, sizeof weir__state(s)->groups);
        weir__state(s)->in_read = false;
        weir__state(s)->writer = 0;
        weir__state(s)->in_call = 0;
        weir__state(s)->armed = false; /* the child has no timer thread */
        weir__set_limits(s);
    }
}

static void init_process(void)
{
    weir__page = (size_t)sysconf(_SC_PAGESIZE);
    void *memory = mmap(NULL, weir__page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        init_result = -errno;
        return;
    }
    /* For clone(2); the handler of fork(3) zeroes the page itself. */
    madvise(memory, weir__page, MADV_WIPEONFORK);
    ((struct weir__globals *)memory)->pid = (int)getpid();
    __atomic_store_n(&weir__globals, memory, __ATOMIC_RELEASE);
    if (atexit(weir__at_exit) != 0 || pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) != 0)
        init_result = -ENOMEM;
}

int weir__process_init(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, init_process);
    return init_result;
}
