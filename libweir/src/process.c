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
    struct weir__patience patience;
    weir__patience_begin(&patience);
    weir__lock_unless_reading(s, &patience, true);
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
    struct weir__patience patience;
    weir__patience_begin(&patience);
    for (size_t slot = 0; (s = weir__ref_next(&slot)) != NULL; weir__unref(s)) {
        struct weir__config *config = weir__config(s);
        bool flushes = config->on_fork == WEIR_FORK_FLUSH || config->share;
        if (!flushes || !weir__belongs_to(s, pid) || !weir__enter_for_flush(s, &patience))
            continue;
        weir__flush_in_place(s);
        weir__leave_after_flush(s);
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
