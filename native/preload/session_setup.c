/* session_setup.c: prepares the first session of a process: the arena, a region in it, and Syscall User Dispatch. */
#include "dispatch.h"
#include "gather.h"

#if WEIR_HAS_DISPATCH
#include "libc.h"
#include "signals.h"

/* Mapped once; a forked child has both too. */
static struct weir_arena *arena;
static char *read_ahead;

static int map_arena(void) {
    long fd = sys_open(config.arena, O_RDWR | O_CLOEXEC);
    if (fd < 0) return 0;
    long at = sys6(__NR_mmap, 0, WEIR_ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    sys_close((int)fd);
    if (at < 0 && at > -4096) return 0;
    arena = (struct weir_arena *)at;
    return arena->magic == WEIR_ARENA_MAGIC && arena->slots == WEIR_ARENA_SLOTS;
}

/* Returns true if /proc knows the process by this pid, as weir does. In another pid namespace it has another one. */
static int has_weirs_pid(uint32_t pid) {
    char name[16];
    long n = sys4(__NR_readlinkat, AT_FDCWD, "/proc/self", name, sizeof name);
    return n > 0 && span_number((struct span){name, (size_t)n}) == pid;
}

/* Claims a slot: first the process's own from before an exec, then a free one. Returns null if there is none. */
static struct weir_region *claim(uint32_t pid) {
    char *regions = (char *)arena + WEIR_ARENA_HEAD_BYTES;
    for (int free = 0; free < 2; free++)
        for (uint64_t i = 0; i < WEIR_ARENA_SLOTS; i++) {
            uint32_t owner = free ? 0 : pid;
            if (arena->owners[i] == owner &&
                __atomic_compare_exchange_n(&arena->owners[i], &owner, pid, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
                return (struct weir_region *)(regions + i * WEIR_REGION_BYTES);
        }
    return NULL;
}

/* Empties the region. After an exec it is the process's former region, whose bytes weir's timer may be writing. */
static void reset(struct weir_region *region) {
    region_lock(region);
    region->head = ((region->head >> 32) + 1) << 32;
    region->drained = 0;
    region->in_length = 0;
    region->in_used = 0;
    region->unnoted_begin = (uint64_t)(uintptr_t)weir_counted_call_returned;
    region->unnoted_end = (uint64_t)(uintptr_t)weir_counted_call_noted;
    region_unlock(region);
}

int session_setup(void) {
    struct session *s = session;
    uint32_t pid = (uint32_t)sys0(__NR_getpid);
    if (!has_weirs_pid(pid)) return 0;
    if (!arena && !map_arena()) return 0;
    if (!read_ahead && !(read_ahead = sys_pages(MAX_READ_AHEAD))) return 0;
    if (!dispatch_enable(&s->selector) || !(s->region = claim(pid))) return 0;
    signals_start();
    reset(s->region);
    s->thread = sys0(__NR_gettid);
    s->in_bytes = read_ahead;
    s->read_ahead_bytes = FIRST_READ_AHEAD;
    s->prepared = 1;
    return 1;
}
#endif
