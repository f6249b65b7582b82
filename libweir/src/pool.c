/* pool.c: keeps mappings of closed streams for the next ones. Mapping, page faults and unmapping take
 * several times as long as reading a small file.
 *
 * Each slot is one word, changed atomically and without a lock: a child forked during a change has the old
 * or the new value. At worst one mapping leaks. */
#include "private.h"

#include <sys/mman.h>

/* Bounds what a process keeps after it has closed all streams: slots of each kind, and the size of a
 * mapping. */
enum { SLOTS = 4, MAX_BYTES = 512 * 1024 };

/* With AddressSanitizer memory is not reused, so that a use after weir_close is detected. */
#if defined(__SANITIZE_ADDRESS__)
enum { POOLED = 0 };
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
enum { POOLED = 0 };
#else
enum { POOLED = 1 };
#endif
#else
enum { POOLED = 1 };
#endif

/* Address of a mapping, with its number of pages in the low bits; 0: empty. */
static _Atomic uintptr_t slots[WEIR__POOLS][SLOTS];

/* Returns the number of pages, or 0 if mappings of that size are not kept. */
static uintptr_t pages_of(size_t bytes)
{
    uintptr_t pages = bytes / weir__page;
    return POOLED && bytes <= MAX_BYTES && bytes % weir__page == 0 && pages < weir__page ? pages : 0;
}

void *weir__pool_get(enum weir__pool pool, size_t bytes)
{
    uintptr_t pages = pages_of(bytes);
    for (size_t i = 0; pages && i < SLOTS; i++) {
        uintptr_t word = atomic_load_explicit(&slots[pool][i], memory_order_relaxed);
        if (word && word % weir__page == pages && atomic_compare_exchange_strong(&slots[pool][i], &word, 0))
            return (void *)(word - pages);
    }
    return NULL;
}

bool weir__pool_put(enum weir__pool pool, void *memory, size_t bytes)
{
    uintptr_t pages = pages_of(bytes);
    for (size_t i = 0; pages && i < SLOTS; i++) {
        uintptr_t empty = 0;
        if (atomic_compare_exchange_strong(&slots[pool][i], &empty, (uintptr_t)memory | pages))
            return true;
    }
    return false;
}
