/* share.c: descriptors that others use as well. */
#include "private.h"

int weir_share(weir_stream *s)
{
    weir__enter(s);
    weir__own(s)->share = true;
    weir__hot(s)->pos = -1;
    int result = weir__flush_held(s);
    weir__leave(s);
    return result;
}

int weir_tie(weir_stream *in, weir_stream *out)
{
    if (in == out)
        return -EINVAL;
    weir__enter(in);
    weir__own(in)->tied = out;
    weir__leave(in);
    return 0;
}

int weir_fd(const weir_stream *s) { return weir__own(s)->fd >= 0 ? weir__own(s)->fd : -EBADF; }

int weir_fileno(weir_stream *s)
{
    weir__enter(s);
    struct weir__own *own = weir__own(s);
    int result = own->can_write ? weir__flush_held(s) : 0;
    if (result == 0 && own->can_read && own->seekable) {
        result = weir__give_back(s);
        if (result == 0)
            weir__drop_read(s);
    }
    weir__hot(s)->pos = -1; /* the caller may move it, and write what the next sync is to cover */
    weir__hot(s)->synced = weir__hot(s)->synced_whole = 0;
    weir__leave(s);
    return result < 0 ? result : weir_fd(s);
}
