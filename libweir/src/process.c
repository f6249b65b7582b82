/* process.c: what exit(3), fork(3) and exec(3) have to do, and what the whole process shares. */
#include "private.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PATIENCE_MS = 1000 }; /* at exit, with a stream that another thread holds */

struct weir__globals *weir__globals;
static int start_result;

/* May this process write out what waits in the stream? Not a child of vfork(2): it is its parent's. */
static bool is_ours(const weir_stream *s, int pid)
{
    const struct weir__own *own = weir__own(s);
    return s->magic == WEIR_STREAM_MAGIC && (own->pid == pid || own->on_fork == WEIR_FORK_KEEP);
}

/* With nothing to be written it is not worth waiting, say, for a thread that waits for input. */
static bool try_enter(weir_stream *s)
{
    struct weir__lock *lock = &weir__hot(s)->lock;
    bool waiting = weir__pending(s) || weir__hot(s)->record_bytes || weir__own(s)->uring;
    return !weir__own(s)->locking || (waiting ? weir__timedlock(lock, s, PATIENCE_MS) : weir__trylock(lock));
}

/* As fclose(3) would: the next program that reads the file goes on where this one stopped. But where a
 * forked child's copy stopped says nothing: moving back would make the parent read bytes twice. */
static void flush_for_the_next(weir_stream *s)
{
    struct weir__own *own = weir__own(s);
    bool copy = own->copied || own->pid != (int)getpid();
    int result = weir__flush_held(s);
    if (result == 0 && !copy && own->can_read && own->seekable && own->fd >= 0) {
        weir__give_back(s);
        weir__drop_read(s);
    }
}

static void at_exit(void)
{
    weir_stream *s;
    int pid = (int)getpid();
    for (size_t slot = 0; (s = weir__hold_next(&slot)) != NULL; weir__release(s)) {
        if (!is_ours(s, pid) || !try_enter(s))
            continue;
        flush_for_the_next(s);
        weir__remove_temporary(s);
        if (weir__own(s)->spill)
            weir__spill_exit(s);
        weir__own(s)->mode = WEIR_NONE; /* other exit handlers may still write */
        weir__set_limits(s);
        weir__leave(s);
    }
}

/* A copy that stdio's rules made (WEIR_FORK_KEEP) is not flushed: its original will be. */
void weir__before_exec(void)
{
    weir_stream *s;
    int pid = (int)getpid();
    for (size_t slot = 0; (s = weir__hold_next(&slot)) != NULL; weir__release(s)) {
        if (!is_ours(s, pid) || weir__own(s)->pid != pid || weir__own(s)->copied || !try_enter(s))
            continue;
        flush_for_the_next(s);
        if (weir__own(s)->spill)
            weir__spill_exec(s);
        weir__leave(s);
    }
}

/* The child is to have a copy of these as they are between two calls, not in the middle of one; but input
 * that a thread waits for may never come. */
static void lock_kept(weir_stream *s)
{
    struct weir__lock *lock = &weir__hot(s)->lock;
    for (unsigned ms = 0; !weir__trylock(lock) && !atomic_load(&weir__hot(s)->waiting) && ms < PATIENCE_MS; ms++)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
}

static void unlock_kept(weir_stream *s)
{
    if (weir__hot(s)->lock.holder == weir__this_thread())
        weir__unlock(&weir__hot(s)->lock);
}

static void each_kept(void (*action)(weir_stream *s))
{
    weir_stream *s;
    for (size_t slot = 0; (s = weir__next_stream(&slot)) != NULL;)
        if (weir__own(s)->on_fork == WEIR_FORK_KEEP && weir__own(s)->locking)
            action(s);
}

static void before_fork(void)
{
    weir_stream *s;
    int pid = (int)getpid();
    for (size_t slot = 0; (s = weir__hold_next(&slot)) != NULL; weir__release(s)) {
        struct weir__own *own = weir__own(s);
        if (!is_ours(s, pid) || (own->on_fork != WEIR_FORK_FLUSH && !own->share) || !try_enter(s))
            continue;
        weir__flush_held(s);
        weir__leave(s);
    }
    weir__registry_lock();
    each_kept(lock_kept);
}

static void after_fork_in_parent(void)
{
    each_kept(unlock_kept);
    weir__registry_unlock();
}

static void after_fork_in_child(void)
{
    weir_stream *s;
    memset(weir__globals, 0, sizeof *weir__globals);
    for (size_t slot = 0; (s = weir__next_stream(&slot)) != NULL;) {
        struct weir__own *own = weir__own(s);
        if (own->on_fork != WEIR_FORK_KEEP) {
            if (s->magic) /* the kernel did not, or an emulator said so and did not */
                weir__wipe(s);
            if (own->uring)
                weir__uring_forget(s);
            if (own->spill)
                weir__spill_renew(s); /* a copy of its descriptor would keep the memory of the file */
            continue;
        }
        own->pid = (int)getpid();
        own->copied = true;
        memset(&weir__hot(s)->lock, 0, sizeof weir__hot(s)->lock);
        weir__hot(s)->holders = 0;
        memset(&weir__hot(s)->rounds, 0, sizeof weir__hot(s)->rounds);
        weir__hot(s)->waiting = false;
        weir__hot(s)->armed = false; /* the timer is not there */
        weir__set_limits(s);
    }
}

static void start(void)
{
    weir__page = (size_t)sysconf(_SC_PAGESIZE);
    void *memory = mmap(NULL, weir__page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        start_result = -errno;
        return;
    }
    madvise(memory, weir__page, MADV_WIPEONFORK); /* for clone(2); the handler of fork(3) does it in any case */
    __atomic_store_n(&weir__globals, memory, __ATOMIC_RELEASE);
    if (atexit(at_exit) != 0 || pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) != 0)
        start_result = -ENOMEM;
}

int weir__process_start(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, start);
    return start_result;
}
