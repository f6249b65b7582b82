/* stream.c: a stream's memory, its state in a forked child, and its limits. */
#include "private.h"

#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

size_t weir__page;

static size_t round_to_page(size_t bytes) { return (bytes + weir__page - 1) & ~(weir__page - 1); }
static size_t all_bytes(void) { return weir__page + round_to_page(sizeof(struct weir__config)); }

/* crates/walkers/src/runtimes/libweir.rs has these offsets */
_Static_assert(offsetof(struct weir__state, lock) == 128 && offsetof(struct weir__state, error) == 156 &&
                   offsetof(struct weir__state, pos) == 176,
               "offsets in struct weir__state");
_Static_assert(offsetof(struct weir__config, fd) == 56 && offsetof(struct weir__config, lock_file) == 76 &&
                   offsetof(struct weir__config, mode) == 80 && offsetof(struct weir__config, spill) == 208 &&
                   offsetof(struct weir__config, direct) == 224 && offsetof(struct weir__config, uring) == 232,
               "offsets in struct weir__config");

/* weir__config() is one page behind the stream */
_Static_assert(sizeof(struct weir__state) <= 4096, "the hot part fits the smallest page");

/* LeakSanitizer does not search mappings by itself: registers the configuration, which refers to memory
 * from malloc (the path, the caller's context). */
extern void __lsan_register_root_region(const void *memory, size_t bytes) __attribute__((weak));
extern void __lsan_unregister_root_region(const void *memory, size_t bytes) __attribute__((weak));

/* Returns the pool of mappings that a fork treats as the stream's. */
static enum weir__pool pool_of(enum weir_on_fork on_fork)
{
    return on_fork == WEIR_FORK_KEEP ? WEIR__POOL_KEPT_STREAMS : WEIR__POOL_STREAMS;
}

static void free_memory(weir_stream *s)
{
    if (__lsan_unregister_root_region)
        __lsan_unregister_root_region(weir__config(s), sizeof(struct weir__config));
    enum weir__pool pool = pool_of(weir__config(s)->on_fork);
    memset(s, 0, sizeof(struct weir__state)); /* tools that inspect the process must not find a stream here */
    memset(weir__config(s), 0, sizeof(struct weir__config));
    if (!weir__pool_put(pool, s, all_bytes()))
        weir__kernel.munmap(s, all_bytes());
}

/* Allocates zeroed memory. *reused: a fork treats it as a stream of `on_fork` already. */
static void *make_memory(enum weir_on_fork on_fork, bool *reused)
{
    void *memory = weir__pool_get(pool_of(on_fork), all_bytes());
    *reused = memory != NULL;
    if (memory)
        return memory;
    memory =
        weir__kernel.mmap(NULL, all_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static int separator_of(const struct weir_options *options)
{
    if (options->separator == 0)
        return '\n';
    return options->separator == WEIR_SEPARATOR_NUL ? 0 : options->separator;
}

static void copy_options(struct weir__config *config, const struct weir_options *options)
{
    config->on_fork = options->on_fork;
    config->access = options->access;
    config->durability = options->durability;
    config->stale_ms = options->stale_ms;
    config->max_record_bytes = options->max_record_bytes;
    config->separator = separator_of(options);
    config->threads = options->flags & WEIR_THREADS;
    config->locking = config->threads || config->stale_ms;
    config->share = options->flags & WEIR_SHARE;
    config->lock_file = options->flags & WEIR_LOCK_FILE;
    config->keep_open = options->flags & WEIR_KEEP_OPEN;
}

/* Failures are ignored: without MADV_WIPEONFORK (emulators) the handler of fork(3) zeroes the state. */
void weir__set_on_fork(weir_stream *s, enum weir_on_fork on_fork)
{
    madvise(s, weir__page, on_fork == WEIR_FORK_KEEP ? MADV_KEEPONFORK : MADV_WIPEONFORK);
    weir__config(s)->on_fork = on_fork;
}

int weir__new(weir_stream **s, const struct weir__sink *sink, const struct weir_options *options)
{
    int result = weir__process_init();
    if (result < 0)
        return result;
    bool reused;
    void *memory = make_memory(options->on_fork, &reused);
    if (!memory)
        return -errno;
    struct weir__config *config = weir__config(memory);
    config->sink = sink;
    config->fd = -1;
    config->pid = (int)getpid();
    config->layout = WEIR__PRIVATE_LAYOUT;
    copy_options(config, options);
    if (config->locking && !atomic_load_explicit(&weir__membarrier, memory_order_relaxed))
        weir__membarrier_register();
    if (!reused)
        weir__set_on_fork(memory, config->on_fork);
    if (__lsan_register_root_region)
        __lsan_register_root_region(config, sizeof *config);
    *s = memory;
    return 0;
}

static void init_public(weir_stream *s)
{
    struct weir__config *config = weir__config(s);
    s->layout = WEIR_LAYOUT;
    s->fd = config->fd;
    s->separator = config->max_record_bytes
                       ? -1
                       : config->separator; /* the inline weir_getrec does not check the limit */
    s->held_read_limit = weir__read_start(s);
    WEIR_STORE(&s->read, s->held_read_limit);
    weir__state(s)->pos = -1;
    weir__buffers_set_pointers(s);
    if (config->direct)
        weir__direct_align_capacity(s);
    weir__set_limits(s);
    WEIR_PUBLISH(&s->magic, WEIR_STREAM_MAGIC); /* last: other threads of a forked child wait for it */
}

int weir__activate(weir_stream *s)
{
    init_public(s);
    int result = weir__register(s);
    if (result == 0 && atomic_load(&weir__globals->exiting))
        weir__opened_at_exit(s);
    return result;
}

/* Initializes the stream at its first use in a forked child. One thread does it; others wait for `magic`. */
WEIR_COLD void weir__reinit(weir_stream *s)
{
    struct weir__state *state = weir__state(s);
    struct weir__config *config = weir__config(s);
    uint32_t nobody = 0;
    if (!atomic_compare_exchange_strong(&state->reinit_running, &nobody, 1)) {
        while (__atomic_load_n(&s->magic, __ATOMIC_ACQUIRE) != WEIR_STREAM_MAGIC)
            sched_yield();
        return;
    }
    config->pid = (int)getpid();
    int result = config->spill ? weir__spill_reinit(s) : 0;
    if (config->uring)
        weir__uring_reinit(s);
    if (result < 0)
        state->error = result;
    init_public(s);
}

void weir__wipe(weir_stream *s) { memset(s, 0, sizeof(struct weir__state)); }

void weir__free(weir_stream *s)
{
    struct weir__config *config = weir__config(s);
    weir__buffers_free(s);
    free(config->path);
    free(config->temporary);
    free_memory(s);
}

/* Keeps the lock and its waiters, and the fields that weir__enter reads before it has the lock, which are
 * equal in both streams. */
void weir__move_stream(weir_stream *s, weir_stream *source)
{
    struct weir__config *config = weir__config(s), *source_config = weir__config(source);
    size_t start = offsetof(weir_stream, layout), lock = offsetof(struct weir__state, lock);
    size_t rest = offsetof(struct weir__state, reinit_running);
    weir__buffers_free(s);
    free(config->path);
    free(config->temporary);
    memcpy((char *)s + start, (char *)source + start, lock - start);
    memcpy((char *)s + rest, (char *)source + rest, sizeof(struct weir__state) - rest);
    size_t threads = offsetof(struct weir__config, threads);
    rest = offsetof(struct weir__config, share);
    memcpy(config, source_config, threads);
    memcpy((char *)config + rest, (char *)source_config + rest, sizeof *config - rest);
    weir__set_on_fork(s, config->on_fork);
    free_memory(source);
}

/* Returns whether the inline calls may append. Computed from the state alone, so that no reason is
 * missed. */
static bool allows_append(const weir_stream *s)
{
    const struct weir__config *config = weir__config(s);
    const struct weir__state *state = weir__state(s);
    return config->can_write && !config->spill && !state->error && !state->reading && (!config->stale_ms || state->armed);
}

/* Stores the limit of a line-buffered stream. At the end of a line stdio/ writes to the sink, without O_DIRECT. */
static void set_line_limit(weir_stream *s)
{
    const struct weir__config *config = weir__config(s);
    bool open = config->mode == WEIR_LINE && config->sink->write && !config->direct && allows_append(s);
    weir__state(s)->line_limit = open ? s->head.base + config->capacity : 0;
    weir__state(s)->line_end = config->separator;
}

void weir__set_limits(weir_stream *s)
{
    const struct weir__config *config = weir__config(s);
    bool open = config->mode == WEIR_FULL && config->durability < WEIR_KERNEL && allows_append(s);
    uint64_t held = open ? s->head.base + config->capacity : 0;
    set_line_limit(s);
    __atomic_store_n(&s->held_limit, held, __ATOMIC_RELAXED);
    __atomic_store_n(&s->limit, config->threads ? 0 : held, __ATOMIC_RELAXED);
    uint64_t read_limit = config->threads ? 0 : s->held_read_limit;
    if (s->read_limit != read_limit) /* no other thread may store it: weir_getc does not load it atomically */
        s->read_limit = read_limit;
    /* last: putc_locked loads it first, perhaps in another thread of a child that is in weir__reinit */
    if (weir__locking(s)) /* never resets it: another thread may have set it meanwhile, see ending.c */
        __atomic_store_n(&weir__state(s)->locking, true, __ATOMIC_RELEASE);
}
