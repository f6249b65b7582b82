/* stream.c: making a stream, setting it up again in a forked child, freeing it, and its limits. */
#include "private.h"

#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

size_t weir__page;

static size_t round_to_page(size_t bytes) { return (bytes + weir__page - 1) & ~(weir__page - 1); }
static size_t all_bytes(void) { return weir__page + round_to_page(sizeof(struct weir__own)); }

/* weir__own() looks one page behind the stream. */
_Static_assert(sizeof(struct weir__hot) <= 4096, "the hot part fits the smallest page");

/* Of the leak sanitizer, in a program that has it: it searches no mappings by itself, and what only the stream
 * knows (its path, the caller's context) is not lost while the stream is open. */
extern void __lsan_register_root_region(const void *memory, size_t bytes) __attribute__((weak));
extern void __lsan_unregister_root_region(const void *memory, size_t bytes) __attribute__((weak));

static void free_memory(weir_stream *s)
{
    if (__lsan_unregister_root_region)
        __lsan_unregister_root_region(weir__own(s), sizeof(struct weir__own));
    bool wiped = weir__own(s)->on_fork != WEIR_FORK_KEEP; /* what weir__set_on_fork has asked for stays so */
    memset(s, 0, sizeof(struct weir__hot)); /* no stream any more, for whoever looks from outside */
    memset(weir__own(s), 0, sizeof(struct weir__own));
    if (!wiped || !weir__pool_give(WEIR__POOL_STREAMS, s, all_bytes()))
        weir__kernel.munmap(s, all_bytes());
}

/* All zeros; `wiped`: and so it would be in a child. */
static void *make_memory(bool *wiped)
{
    void *memory = weir__pool_take(WEIR__POOL_STREAMS, all_bytes());
    *wiped = memory != NULL;
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

static void copy_options(struct weir__own *own, const struct weir_options *options)
{
    own->on_fork = options->on_fork;
    own->access = options->access;
    own->durability = options->durability;
    own->stale_ms = options->stale_ms;
    own->max_record_bytes = options->max_record_bytes;
    own->separator = separator_of(options);
    own->threads = options->flags & WEIR_THREADS;
    own->locking = own->threads || own->stale_ms;
    own->share = options->flags & WEIR_SHARE;
    own->lock_file = options->flags & WEIR_LOCK_FILE;
    own->keep_open = options->flags & WEIR_KEEP_OPEN;
}

/* Where the kernel cannot (emulators), the handler of fork(3) wipes. */
void weir__set_on_fork(weir_stream *s, enum weir_on_fork on_fork)
{
    madvise(s, weir__page, on_fork == WEIR_FORK_KEEP ? MADV_KEEPONFORK : MADV_WIPEONFORK);
    weir__own(s)->on_fork = on_fork;
}

int weir__new(weir_stream **s, const struct weir__sink *sink, const struct weir_options *options)
{
    int result = weir__process_start();
    if (result < 0)
        return result;
    bool wiped;
    void *memory = make_memory(&wiped);
    if (!memory)
        return -errno;
    struct weir__own *own = weir__own(memory);
    own->sink = sink;
    own->fd = -1;
    own->pid = (int)getpid();
    copy_options(own, options);
    if (own->locking && !atomic_load_explicit(&weir__barrier, memory_order_relaxed))
        weir__barrier_ask();
    if (!wiped || own->on_fork == WEIR_FORK_KEEP)
        weir__set_on_fork(memory, own->on_fork);
    if (__lsan_register_root_region)
        __lsan_register_root_region(own, sizeof *own);
    *s = memory;
    return 0;
}

static void set_up(weir_stream *s)
{
    struct weir__own *own = weir__own(s);
    s->layout = WEIR_LAYOUT;
    s->fd = own->fd;
    s->separator = own->max_record_bytes ? -1 : own->separator; /* the inline weir_getrec knows no limit */
    s->held_read_limit = weir__read_start(s);
    WEIR_STORE(&s->read, s->held_read_limit);
    weir__hot(s)->pos = -1;
    weir__buffers_point(s);
    if (own->direct)
        weir__direct_fit(s);
    weir__set_limits(s);
    WEIR_PUBLISH(&s->magic, WEIR_STREAM_MAGIC); /* last: other threads of a child wait for it */
}

int weir__ready(weir_stream *s)
{
    set_up(s);
    return weir__register(s);
}

/* A child's first use of the stream; two of its threads may come at once. */
WEIR_COLD void weir__adopt(weir_stream *s)
{
    struct weir__hot *hot = weir__hot(s);
    struct weir__own *own = weir__own(s);
    uint32_t nobody = 0;
    if (!atomic_compare_exchange_strong(&hot->adopting, &nobody, 1)) {
        while (__atomic_load_n(&s->magic, __ATOMIC_ACQUIRE) != WEIR_STREAM_MAGIC)
            sched_yield();
        return;
    }
    own->pid = (int)getpid();
    int result = own->spill ? weir__spill_renew(s) : 0;
    if (own->uring)
        weir__uring_renew(s);
    if (result < 0)
        hot->error = result;
    set_up(s);
}

void weir__wipe(weir_stream *s) { memset(s, 0, sizeof(struct weir__hot)); }

void weir__free(weir_stream *s)
{
    struct weir__own *own = weir__own(s);
    weir__buffers_free(s);
    free(own->path);
    free(own->temporary);
    free_memory(s);
}

/* Who waits for the lock of s goes on waiting for it; what weir__enter looks at before it has the lock is the
 * same in both, and not written. */
void weir__become(weir_stream *s, weir_stream *made)
{
    struct weir__own *own = weir__own(s), *other = weir__own(made);
    size_t known = offsetof(weir_stream, layout), lock = offsetof(struct weir__hot, lock);
    size_t behind = offsetof(struct weir__hot, adopting);
    weir__buffers_free(s);
    free(own->path);
    free(own->temporary);
    memcpy((char *)s + known, (char *)made + known, lock - known);
    memcpy((char *)s + behind, (char *)made + behind, sizeof(struct weir__hot) - behind);
    size_t threads = offsetof(struct weir__own, threads);
    behind = offsetof(struct weir__own, share);
    memcpy(own, other, threads);
    memcpy((char *)own + behind, (char *)other + behind, sizeof *own - behind);
    weir__set_on_fork(s, own->on_fork);
    free_memory(made);
}

/* May the inline calls append? From the state alone, so that no reason can be forgotten. */
static bool appends_quickly(const weir_stream *s)
{
    const struct weir__own *own = weir__own(s);
    const struct weir__hot *hot = weir__hot(s);
    return own->can_write && own->mode == WEIR_FULL && !own->spill && own->durability < WEIR_KERNEL && !hot->error &&
           !hot->reading && (!own->stale_ms || hot->armed);
}

void weir__set_limits(weir_stream *s)
{
    const struct weir__own *own = weir__own(s);
    uint64_t held = appends_quickly(s) ? s->head.base + own->capacity : 0;
    __atomic_store_n(&s->held_limit, held, __ATOMIC_RELAXED);
    __atomic_store_n(&s->limit, own->threads ? 0 : held, __ATOMIC_RELAXED);
    uint64_t read_limit = own->threads ? 0 : s->held_read_limit;
    if (s->read_limit != read_limit) /* never stored by another thread: weir_getc reads it as it is */
        s->read_limit = read_limit;
    /* Last: another thread of a child whose stream is set up right now looks at nothing else first. */
    __atomic_store_n(&weir__hot(s)->locking, own->locking, __ATOMIC_RELEASE);
}
