/* look_ahead.c: how far the next record of a shared pipe or socket reaches, without taking any of it: what
 * lies behind belongs to whoever reads next. Copies come by tee(2) into a pipe of our own, or by MSG_PEEK. */
#include "private.h"

#include <sys/socket.h>
#include <unistd.h>

enum { AT_ONCE = 4096, UNTRIED = 0, NONE = -1 };

static void close_pipe(struct weir__own *own)
{
    weir__kernel.close(own->look[0]);
    weir__kernel.close(own->look[1]);
    own->look_pid = NONE;
}

/* Made at the first use. A forked child makes its own: two who read copies from one would mix them up. */
static bool have_pipe(struct weir__own *own)
{
    int pid = (int)getpid();
    if (own->look_pid == NONE || own->look_pid == pid)
        return own->look_pid == pid;
    if (own->look_pid != UNTRIED)
        close_pipe(own);
    own->look_pid = weir__kernel.pipe2(own->look, O_CLOEXEC) == 0 ? pid : NONE;
    return own->look_pid == pid;
}

static ssize_t copy_of_pipe(struct weir__own *own, char *to)
{
    if (!have_pipe(own))
        return 0;
    ssize_t copied = weir__kernel.tee(own->fd, own->look[1], AT_ONCE, SPLICE_F_NONBLOCK), done = 0;
    while (done < copied) {
        ssize_t got = weir__kernel.read(own->look[0], to + done, (size_t)(copied - done));
        if (got <= 0 && errno != EINTR) { /* what is left in it would be taken for the next record */
            close_pipe(own);
            return 0;
        }
        done += got > 0 ? got : 0;
    }
    return copied;
}

/* Nothing to be had yet, the end, an error: one byte, for the read to come to wait for or to report. */
size_t weir__look_ahead(weir_stream *s)
{
    struct weir__own *own = weir__own(s);
    char copy[AT_ONCE];
    ssize_t bytes = own->is_pipe   ? copy_of_pipe(own, copy)
                    : own->is_socket ? weir__kernel.recv(own->fd, copy, sizeof copy, MSG_PEEK | MSG_DONTWAIT)
                                     : 0;
    if (bytes <= 0)
        return 1;
    const char *end = memchr(copy, own->separator, (size_t)bytes);
    return end ? (size_t)(end - copy) + 1 : (size_t)bytes;
}

void weir__look_ahead_end(weir_stream *s)
{
    struct weir__own *own = weir__own(s);
    if (own->look_pid == (int)getpid())
        close_pipe(own);
}
