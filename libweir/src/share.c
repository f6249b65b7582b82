/* share.c: descriptors that other processes or libraries use as well. */
#include "private.h"

int weir_share(weir_stream *s)
{
    weir__enter(s);
    weir__config(s)->share = true;
    weir__state(s)->pos = -1;
    int result = weir__flush_held(s);
    weir__leave(s);
    return result;
}

int weir_tie(weir_stream *in, weir_stream *out)
{
    if (in == out)
        return -EINVAL;
    weir__enter(in);
    if (out)
        __atomic_store_n(&weir__config(out)->has_ties, true, __ATOMIC_RELAXED);
    weir__config(in)->tied = out;
    weir__leave(in);
    return 0;
}

int weir_fd(const weir_stream *s) { return weir__config(s)->fd >= 0 ? weir__config(s)->fd : -EBADF; }

int weir_fileno(weir_stream *s)
{
    weir__enter(s);
    struct weir__config *config = weir__config(s);
    int result = config->can_write ? weir__flush_held(s) : 0;
    if (result == 0 && config->can_read && config->seekable) {
        result = weir__seek_back(s);
        if (result == 0)
            weir__discard_read(s);
    }
    weir__state(s)->pos =
        -1; /* the caller may move the position, and its writes must be covered by the next sync */
    weir__state(s)->synced = weir__state(s)->synced_whole = 0;
    weir__leave(s);
    return result < 0 ? result : weir_fd(s);
}
