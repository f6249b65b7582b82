/* registry.c: all open streams of the process, one per slot. Slots are stored atomically, so a child forked
 * during a change and a walk without the lock see the old or the new value. */
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

static int store_in_slot(weir_stream *s)
{
    for (size_t slot = weir__globals->first_free; slot < (size_t)CHUNKS * CHUNK_SLOTS; slot++) {
        struct chunk *chunk = chunk_at(slot / CHUNK_SLOTS);
        if (!chunk)
            return -ENOMEM;
        if (atomic_load(&chunk->slot[slot % CHUNK_SLOTS]))
            continue;
        weir__config(s)->slot = slot;
        atomic_store(&chunk->slot[slot % CHUNK_SLOTS], s);
        weir__globals->first_free = slot + 1;
        return 0;
    }
    return -EMFILE;
}

int weir__register(weir_stream *s)
{
    weir__registry_lock();
    int result = store_in_slot(s);
    weir__registry_unlock();
    return result;
}

/* Waits until no thread has a reference. Such a thread may need the stream's lock: if this thread holds it,
 * it is released meanwhile. */
static void wait_for_refs(weir_stream *s)
{
    struct weir__state *state = weir__state(s);
    bool locked_here = atomic_load(&state->lock.owner) == weir__this_thread();
    uint32_t depth = locked_here ? state->lock.depth : 0;
    struct timespec moment = {0, 50000};
    if (!atomic_load(&state->refs) ||
        weir__config(s)->pid != (int)getpid()) /* a forked child has no other threads */
        return;
    if (locked_here) {
        state->lock.depth = 0;
        weir__unlock(&state->lock);
    }
    while (atomic_load(&state->refs))
        nanosleep(&moment, NULL);
    if (locked_here) {
        weir__lock(&state->lock, s);
        state->lock.depth = depth;
    }
}

/* Unties the streams that are tied to this one. Most streams have none: closing them takes no time for the others. */
static void remove_ties(weir_stream *s)
{
    weir_stream *other;
    if (!__atomic_load_n(&weir__config(s)->has_ties, __ATOMIC_RELAXED))
        return;
    for (size_t at = 0; (other = weir__next_stream(&at)) != NULL;)
        if (weir__config(other)->tied == s)
            weir__config(other)->tied = NULL;
}

void weir__unregister(weir_stream *s)
{
    size_t slot = weir__config(s)->slot;
    weir__registry_lock();
    atomic_store(&atomic_load(&chunks[slot / CHUNK_SLOTS])->slot[slot % CHUNK_SLOTS], NULL);
    if (slot < weir__globals->first_free)
        weir__globals->first_free = slot;
    remove_ties(s);
    weir__registry_unlock();
    weir__stale_wait(s);
    wait_for_refs(s);
}

weir_stream *weir__ref_next(size_t *slot)
{
    if (!__atomic_load_n(&weir__globals, __ATOMIC_ACQUIRE)) /* no stream was ever opened */
        return NULL;
    weir__registry_lock();
    weir_stream *s = weir__next_stream(slot);
    if (s)
        atomic_fetch_add(&weir__state(s)->refs, 1);
    weir__registry_unlock();
    return s;
}

void weir__unref(weir_stream *s) { atomic_fetch_sub(&weir__state(s)->refs, 1); }

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
