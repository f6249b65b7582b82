/* flush.c: everything accepted goes out now. */
#include "private.h"

int weir__flush_held(weir_stream *s)
{
    struct weir__own *own = weir__own(s);
    struct weir__hot *hot = weir__hot(s);
    int result = 0;
    if (own->can_write && own->sink->write) {
        if (hot->error)
            return hot->error;
        if (hot->record_bytes) { /* a record that was begun is asked for as it is */
            uint64_t bytes = hot->record_bytes;
            hot->record_bytes = 0;
            weir__publish(s, bytes);
        }
        result = weir__drain(s);
        if (result == 0 && own->sink->finish)
            result = own->sink->finish(s);
    }
    if (result == 0 && own->share && own->can_read) {
        result = weir__give_back(s);
        if (result == 0 && own->seekable)
            weir__drop_read(s);
    }
    return result;
}

int weir_flush(weir_stream *s)
{
    weir__enter(s);
    int result = weir__flush_held(s);
    weir__leave(s);
    return result;
}

int weir_flush_all(void)
{
    weir_stream *s;
    int first = 0;
    for (size_t slot = 0; (s = weir__hold_next(&slot)) != NULL; weir__release(s)) {
        if (!weir__own(s)->can_write && !weir__own(s)->share)
            continue;
        int result = weir_flush(s);
        if (first == 0)
            first = result;
    }
    return first;
}
