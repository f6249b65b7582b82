/* record.c: WEIR_RECORD mode. A record's bytes are published when the record is complete, so that only
 * whole records can be written, whether by the owner, the timer or weir_recover. */
#include "private.h"

/* Makes room behind the incomplete record: drains complete records first, then grows the buffer. */
static int make_room(weir_stream *s, size_t bytes)
{
    struct weir__config *config = weir__config(s);
    if (bytes <= weir__room(s))
        return 0;
    int result = config->sink->write ? weir__drain_async(s) : 0;
    if (result < 0 || bytes <= weir__room(s))
        return result;
    uint64_t used = weir__written(s) + weir__state(s)->record_bytes;
    size_t wanted = config->capacity * 2 > used + bytes ? config->capacity * 2 : used + bytes;
    return weir__grow_write(s, wanted);
}

/* Publishes everything up to the last separator among the newest `bytes` bytes. */
static void publish_complete(weir_stream *s, size_t bytes)
{
    struct weir__config *config = weir__config(s);
    struct weir__state *state = weir__state(s);
    char *begin = config->buffer + weir__written(s);
    const char *end = NULL;
    if (config->separator >= 0)
        end = memrchr(begin + state->record_bytes - bytes, config->separator, bytes);
    if (!end)
        return;
    uint64_t whole = (uint64_t)(end - begin) + 1, from = weir__written(s);
    state->record_bytes -= whole;
    weir__publish(s, whole);
    weir__after_append(s, from);
}

static void append(weir_stream *s, const void *from, size_t bytes)
{
    struct weir__state *state = weir__state(s);
    if (bytes > 0)
        memcpy(weir__config(s)->buffer + weir__written(s) + state->record_bytes, from, bytes);
    state->record_bytes += bytes;
}

ssize_t weir__record_append(weir_stream *s, const struct iovec *iov, int count)
{
    size_t bytes = 0;
    for (int i = 0; i < count; i++)
        bytes += iov[i].iov_len;
    if (bytes > WEIR_BUFFER_MAX)
        return -EMSGSIZE;
    int result = make_room(s, bytes);
    if (result < 0)
        return result;
    for (int i = 0; i < count; i++)
        append(s, iov[i].iov_base, iov[i].iov_len);
    publish_complete(s, bytes); /* accepted: a write error sticks */
    return (ssize_t)bytes;
}

void weir__record_commit(weir_stream *s, size_t bytes)
{
    weir__state(s)->record_bytes += bytes;
    publish_complete(s, bytes);
}

/* Drains the previous record if the sink is a pipe and records have no separator: each record then needs a
 * write of its own. */
static int drain_before_unseparated(weir_stream *s)
{
    struct weir__config *config = weir__config(s);
    return config->is_pipe && config->separator < 0 && weir__pending(s) ? weir__drain(s) : 0;
}

/* Publishes the record. Returns 0 if it was accepted, even if the write failed. */
static int complete_record(weir_stream *s)
{
    struct weir__state *state = weir__state(s);
    int result = drain_before_unseparated(s);
    if (result < 0)
        return result;
    uint64_t from = weir__written(s), bytes = state->record_bytes;
    state->record_bytes = 0;
    weir__publish(s, bytes);
    weir__after_append(s, from);
    return 0;
}

static ssize_t putrec_held(weir_stream *s, const void *from, size_t bytes)
{
    struct weir__config *config = weir__config(s);
    int result = weir__start_writing(s);
    if (result < 0)
        return result;
    char end = (char)config->separator;
    if (config->mode != WEIR_RECORD) {
        struct iovec parts[2] = {{(void *)(uintptr_t)from, bytes}, {&end, 1}};
        ssize_t all = weir__write_whole(s, parts, config->separator < 0 ? 1 : 2);
        return all < 0 ? all : (ssize_t)bytes;
    }
    if (bytes >= WEIR_BUFFER_MAX)
        return -EMSGSIZE;
    result = drain_before_unseparated(s);
    if (result == 0)
        result = make_room(s, bytes + 1);
    if (result < 0)
        return result;
    append(s, from, bytes);
    append(s, &end, config->separator >= 0);
    complete_record(s);
    return (ssize_t)bytes;
}

ssize_t weir_putrec(weir_stream *s, const void *from, size_t bytes)
{
    weir__enter(s);
    ssize_t result = putrec_held(s, from, bytes);
    weir__leave(s);
    return result;
}

static int endrec_held(weir_stream *s)
{
    struct weir__config *config = weir__config(s);
    int result = weir__start_writing(s);
    if (result < 0)
        return result;
    if (config->separator >= 0) {
        char end = (char)config->separator;
        ssize_t accepted = weir__write_held(s, &end, 1);
        return accepted < 0 ? (int)accepted : 0;
    }
    return config->mode == WEIR_RECORD ? complete_record(s) : 0;
}

int weir_endrec(weir_stream *s)
{
    weir__enter(s);
    int result = endrec_held(s);
    weir__leave(s);
    return result;
}
