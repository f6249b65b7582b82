/* process.c: the hooks of exit(3), fork(3) and exec(3), and the data of the whole process. */
#include "private.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LOCK_TIMEOUT_MS = 1000 }; /* at exit, to lock a stream that another thread holds */

struct weir__globals *weir__globals;
static int init_result;

/* Returns whether this process may write the stream's pending bytes. False in a child of vfork(2): the
 * stream is its parent's. */
static bool belongs_to(const weir_stream *s, int pid)
{
    const struct weir__config *config = weir__config(s);
    return s->magic == WEIR_STREAM_MAGIC && (config->pid == pid || config->on_fork == WEIR_FORK_KEEP);
}

/* Locks the stream. If nothing is pending, does not wait: the owner may be blocked in a read. */
static bool try_enter(weir_stream *s)
{
    struct weir__lock *lock = &weir__state(s)->lock;
    bool has_pending = weir__pending(s) || weir__state(s)->record_bytes || weir__config(s)->uring;
    return !weir__config(s)->locking ||
           (has_pending ? weir__timedlock(lock, s, LOCK_TIMEOUT_MS) : weir__trylock(lock));
}

/* Flushes and seeks back over read-ahead bytes, as fclose(3), so that the next program continues at the
 * stream's position. Does not seek back for a forked child's copy: the parent would read bytes twice. */
static void flush_and_seek_back(weir_stream *s)
{
    struct weir__config *config = weir__config(s);
    bool is_copy = config->copied || config->pid != (int)getpid();
    int result = weir__flush_held(s);
    if (result == 0 && !is_copy && config->can_read && config->seekable && config->fd >= 0) {
        weir__seek_back(s);
        weir__discard_read(s);
    }
}

static void at_exit(void)
{
    weir_stream *s;
    int pid = (int)getpid();
    for (size_t slot = 0; (s = weir__ref_next(&slot)) != NULL; weir__unref(s)) {
        if (!belongs_to(s, pid) || !try_enter(s))
            continue;
        flush_and_seek_back(s);
        weir__remove_temporary(s);
        if (weir__config(s)->spill)
            weir__spill_exit(s);
        weir__config(s)->mode = WEIR_NONE; /* exit handlers that run later may still write */
        weir__set_limits(s);
        weir__leave(s);
    }
}

/* Does not flush a forked child's copy of a WEIR_FORK_KEEP stream: the original is flushed by the parent. */
void weir__before_exec(void)
{
    weir_stream *s;
    int pid = (int)getpid();
    for (size_t slot = 0; (s = weir__ref_next(&slot)) != NULL; weir__unref(s)) {
        if (!belongs_to(s, pid) || weir__config(s)->pid != pid || weir__config(s)->copied || !try_enter(s))
            continue;
        flush_and_seek_back(s);
        if (weir__config(s)->spill)
            weir__spill_exec(s);
        weir__leave(s);
    }
}

/* Locks the stream, so that the child's copy is in the state between two calls. A thread that is blocked in
 * a read leaves a consistent state; do not wait for it. */
static void lock_kept(weir_stream *s)
{
    struct weir__lock *lock = &weir__state(s)->lock;
    for (unsigned ms = 0;
         !weir__trylock(lock) && !atomic_load(&weir__state(s)->in_read) && ms < LOCK_TIMEOUT_MS; ms++)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
}

static void unlock_kept(weir_stream *s)
{
    if (weir__state(s)->lock.owner == weir__this_thread())
        weir__unlock(&weir__state(s)->lock);
}

static void for_each_kept(void (*action)(weir_stream *s))
{
    weir_stream *s;
    for (size_t slot = 0; (s = weir__next_stream(&slot)) != NULL;)
        if (weir__config(s)->on_fork == WEIR_FORK_KEEP && weir__config(s)->locking)
            action(s);
}

static void before_fork(void)
{
    weir_stream *s;
    int pid = (int)getpid();
    for (size_t slot = 0; (s = weir__ref_next(&slot)) != NULL; weir__unref(s)) {
        struct weir__config *config = weir__config(s);
        if (!belongs_to(s, pid) || (config->on_fork != WEIR_FORK_FLUSH && !config->share) || !try_enter(s))
            continue;
        weir__flush_held(s);
        weir__leave(s);
    }
    weir__registry_lock();
    for_each_kept(lock_kept);
}

static void after_fork_in_parent(void)
{
    for_each_kept(unlock_kept);
    weir__registry_unlock();
}

static void after_fork_in_child(void)
{
    weir_stream *s;
    memset(weir__globals, 0, sizeof *weir__globals);
    for (size_t slot = 0; (s = weir__next_stream(&slot)) != NULL;) {
        struct weir__config *config = weir__config(s);
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
        memset(&weir__state(s)->lock, 0, sizeof weir__state(s)->lock);
        weir__state(s)->refs = 0;
        memset(&weir__state(s)->groups, 0, sizeof weir__state(s)->groups);
        weir__state(s)->in_read = false;
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
    __atomic_store_n(&weir__globals, memory, __ATOMIC_RELEASE);
    if (atexit(at_exit) != 0 || pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) != 0)
        init_result = -ENOMEM;
}

int weir__process_init(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, init_process);
    return init_result;
}
