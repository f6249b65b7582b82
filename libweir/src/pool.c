/* pool.c: memory of streams that were closed, for the next ones. To map, to touch and to unmap it takes several times
 * as long as to read a small file.
 *
 * A slot is a word that is changed as a whole, without a lock: a child that is forked in the middle of a change has it
 * as it was before or after, and at worst one mapping that nobody knows. */
#include "private.h"

#include <sys/mman.h>

/* So many of each kind, and none that is larger, stay with a process that has closed everything. */
enum { SLOTS = 4, MAX_BYTES = 512 * 1024 };

/* Where the sanitizer of addresses is to find a use of memory after weir_close, that memory is not used again. */
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

/* The address, and in the bits that are 0 in it the number of pages; 0: empty. */
static _Atomic uintptr_t slots[WEIR__POOLS][SLOTS];

/* 0: not of a size that is kept. */
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
