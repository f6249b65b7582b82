/* registry.c: every open stream of the process, in slots that are each stored whole. A child forked in
 * the middle of a change, and a walk without the lock, see each slot before or after it. */
#include "private.h"

#include <unistd.h>

enum { CHUNK_SLOTS = 256, CHUNKS = 4096 };

struct chunk {
    _Atomic(weir_stream *) slot[CHUNK_SLOTS];
};

static _Atomic(struct chunk *) chunks[CHUNKS];

void weir__registry_lock(void) { weir__lock(&weir__globals->registry, NULL); }
void weir__registry_unlock(void) { weir__unlock(&weir__globals->registry); }

static struct chunk *chunk_at(size_t index)
{
    struct chunk *chunk = atomic_load(&chunks[index]);
    if (!chunk && (chunk = calloc(1, sizeof *chunk)) != NULL)
        atomic_store(&chunks[index], chunk);
    return chunk;
}

static int put_in_a_slot(weir_stream *s)
{
    for (size_t slot = weir__globals->first_free; slot < (size_t)CHUNKS * CHUNK_SLOTS; slot++) {
        struct chunk *chunk = chunk_at(slot / CHUNK_SLOTS);
        if (!chunk)
            return -ENOMEM;
        if (atomic_load(&chunk->slot[slot % CHUNK_SLOTS]))
            continue;
        weir__own(s)->slot = slot;
        atomic_store(&chunk->slot[slot % CHUNK_SLOTS], s);
        weir__globals->first_free = slot + 1;
        return 0;
    }
    return -EMFILE;
}

int weir__register(weir_stream *s)
{
    weir__registry_lock();
    int result = put_in_a_slot(s);
    weir__registry_unlock();
    return result;
}

/* Those who came by the registry may want the lock that this thread has: they get it. */
static void wait_for_holders(weir_stream *s)
{
    struct weir__hot *hot = weir__hot(s);
    bool ours = atomic_load(&hot->lock.holder) == weir__this_thread();
    uint32_t depth = ours ? hot->lock.depth : 0;
    struct timespec moment = {0, 50000};
    if (!atomic_load(&hot->holders) || weir__own(s)->pid != (int)getpid()) /* a child has no other threads */
        return;
    if (ours) {
        hot->lock.depth = 0;
        weir__unlock(&hot->lock);
    }
    while (atomic_load(&hot->holders))
        nanosleep(&moment, NULL);
    if (ours) {
        weir__lock(&hot->lock, s);
        hot->lock.depth = depth;
    }
}

void weir__unregister(weir_stream *s)
{
    size_t slot = weir__own(s)->slot;
    weir__registry_lock();
    atomic_store(&atomic_load(&chunks[slot / CHUNK_SLOTS])->slot[slot % CHUNK_SLOTS], NULL);
    if (slot < weir__globals->first_free)
        weir__globals->first_free = slot;
    weir_stream *other;
    for (size_t at = 0; (other = weir__next_stream(&at)) != NULL;)
        if (weir__own(other)->tied == s)
            weir__own(other)->tied = NULL;
    weir__registry_unlock();
    weir__stale_forget(s);
    wait_for_holders(s);
}

weir_stream *weir__hold_next(size_t *slot)
{
    if (!__atomic_load_n(&weir__globals, __ATOMIC_ACQUIRE)) /* there was never one */
        return NULL;
    weir__registry_lock();
    weir_stream *s = weir__next_stream(slot);
    if (s)
        atomic_fetch_add(&weir__hot(s)->holders, 1);
    weir__registry_unlock();
    return s;
}

void weir__release(weir_stream *s) { atomic_fetch_sub(&weir__hot(s)->holders, 1); }

weir_stream *weir__next_stream(size_t *slot)
{
    for (; *slot < (size_t)CHUNKS * CHUNK_SLOTS; ++*slot) {
        struct chunk *chunk = atomic_load(&chunks[*slot / CHUNK_SLOTS]);
        if (!chunk)
            return NULL;
        weir_stream *s = atomic_load(&chunk->slot[*slot % CHUNK_SLOTS]);
        if (s) {
            ++*slot;
            return s;
        }
    }
    return NULL;
}
