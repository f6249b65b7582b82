/* write_whole.c: appends data that is accepted completely or not at all: formatted text, strings,
 * records. */
#include "private.h"

#include <limits.h>

ssize_t weir__iov_length(const struct iovec *iov, int count)
{
    size_t bytes = 0;
    for (int i = 0; i < count; i++) {
        if (iov[i].iov_len > SSIZE_MAX - bytes)
            return -EINVAL;
        bytes += iov[i].iov_len;
    }
    return (ssize_t)bytes;
}

static void copy_in(weir_stream *s, const struct iovec *iov, int count, size_t skip)
{
    for (int i = 0; i < count; i++) {
        size_t over = skip < iov[i].iov_len ? skip : iov[i].iov_len, bytes = iov[i].iov_len - over;
        skip -= over;
        if (bytes == 0)
            continue;
        memcpy(weir__config(s)->buffer + weir__written(s), (char *)iov[i].iov_base + over, bytes);
        weir__publish(s, bytes);
    }
}

/* Appends the rest of a partly written unit, in a buffer grown for it. */
static int append_rest(weir_stream *s, const struct iovec *iov, int count, size_t skip, size_t bytes)
{
    struct weir__state *state = weir__state(s);
    if (bytes > weir__room(s)) {
        int result = weir__grow_write(s, weir__written(s) + bytes);
        if (result < 0) { /* a part is already written: the error must stick */
            state->error = result;
            weir__set_limits(s);
            return result;
        }
    }
    copy_in(s, iov, count, skip);
    return 0;
}

ssize_t weir__write_whole(weir_stream *s, const struct iovec *iov, int count)
{
    ssize_t total = weir__iov_length(iov, count);
    if (total < 0)
        return total;
    if ((size_t)total > WEIR_BUFFER_MAX)
        return -EMSGSIZE;
    int result = weir__start_writing(s);
    if (result < 0)
        return result;
    if (weir__config(s)->mode == WEIR_RECORD)
        return weir__record_append(s, iov, count);
    if ((size_t)total <= weir__room(s)) {
        uint64_t from = weir__written(s);
        copy_in(s, iov, count, 0);
        weir__after_append(s, from); /* accepted: a write error sticks */
        return total;
    }
    ssize_t done = weir__write_parts(s, iov, count, (size_t)total);
    if (done <= 0 || done == total)
        return done;
    result = append_rest(s, iov, count, (size_t)done, (size_t)(total - done));
    return result < 0 ? result : total;
}
