/* prepare.c: what the first session of a process needs: the arena, a region in it, and the door. */
#include "dispatch.h"
#include "gather.h"

#if WEIR_HAS_DISPATCH
#include "libc.h"
#include "signals.h"

/* Made once; a fork's child has both too. */
static struct weir_arena *arena;
static char *ahead;

static int map_arena(void) {
    long fd = sys_open(config.arena, O_RDWR | O_CLOEXEC);
    if (fd < 0) return 0;
    long at = sys6(__NR_mmap, 0, WEIR_ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    sys_close((int)fd);
    if (at < 0 && at > -4096) return 0;
    arena = (struct weir_arena *)at;
    return arena->magic == WEIR_ARENA_MAGIC && arena->slots == WEIR_ARENA_SLOTS;
}

/* weir knows this process by the pid that /proc has for it; in a pid namespace of its own that is another one. */
static int has_plain_pid(uint32_t pid) {
    char name[16];
    long n = sys4(__NR_readlinkat, AT_FDCWD, "/proc/self", name, sizeof name);
    return n > 0 && span_number((struct span){name, (size_t)n}) == pid;
}

static struct weir_region *claim(uint32_t pid) {
    char *regions = (char *)arena + WEIR_ARENA_HEAD_BYTES;
    for (int again = 0; again < 2; again++) /* first the slot from before an exec */
        for (uint64_t i = 0; i < WEIR_ARENA_SLOTS; i++) {
            uint32_t owner = again ? 0 : pid;
            if (arena->owners[i] == owner &&
                __atomic_compare_exchange_n(&arena->owners[i], &owner, pid, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
                return (struct weir_region *)(regions + i * WEIR_REGION_BYTES);
        }
    return NULL;
}

static void clean(struct weir_region *region) {
    region->head = ((region->head >> 32) + 1) << 32;
    region->drained = 0;
    region->lock = 0;
    region->in_length = 0;
    region->in_used = 0;
    region->flight_back = (uint64_t)(uintptr_t)weir_flight_back;
    region->flight_done = (uint64_t)(uintptr_t)weir_flight_done;
}

int prepare(void) {
    struct session *s = session;
    uint32_t pid = (uint32_t)sys0(__NR_getpid);
    if (!has_plain_pid(pid)) return 0;
    if (!arena && !map_arena()) return 0;
    if (!ahead && !(ahead = sys_pages(IN_BYTES))) return 0;
    if (!dispatch_enable(&s->selector) || !(s->region = claim(pid))) return 0;
    signals_start();
    clean(s->region);
    s->task = sys0(__NR_gettid);
    s->in_bytes = ahead;
    s->in_want = IN_FIRST;
    s->prepared = 1;
    return 1;
}
#endif
