/* look_ahead.c: how far the next record of a shared pipe or socket reaches, without taking any of it: what
 * lies behind belongs to whoever reads next. Copies come by tee(2) into a pipe of our own, or by MSG_PEEK. */
#include "private.h"

#include <sys/socket.h>
#include <unistd.h>

enum { PEEK_BYTES = 4096, NOT_CREATED = 0, FAILED = -1 };

static void close_pipe(struct weir__config *config)
{
    weir__kernel.close(config->peek_pipe[0]);
    weir__kernel.close(config->peek_pipe[1]);
    config->peek_pid = FAILED;
}

/* Made at the first use. A forked child makes its own: two who read copies from one would mix them up. */
static bool ensure_pipe(struct weir__config *config)
{
    int pid = (int)getpid();
    if (config->peek_pid == FAILED || config->peek_pid == pid)
        return config->peek_pid == pid;
    if (config->peek_pid != NOT_CREATED)
        close_pipe(config);
    config->peek_pid = weir__kernel.pipe2(config->peek_pipe, O_CLOEXEC) == 0 ? pid : FAILED;
    return config->peek_pid == pid;
}

static ssize_t copy_from_pipe(struct weir__config *config, char *to)
{
    if (!ensure_pipe(config))
        return 0;
    ssize_t copied = weir__kernel.tee(config->fd, config->peek_pipe[1], PEEK_BYTES, SPLICE_F_NONBLOCK),
            copied_bytes = 0;
    while (copied_bytes < copied) {
        ssize_t got =
            weir__kernel.read(config->peek_pipe[0], to + copied_bytes, (size_t)(copied - copied_bytes));
        if (got <= 0 && errno != EINTR) { /* what is left in it would be taken for the next record */
            close_pipe(config);
            return 0;
        }
        copied_bytes += got > 0 ? got : 0;
    }
    return copied;
}

/* Nothing to be had yet, the end, an error: one byte, for the read to come to wait for or to report. */
size_t weir__peek_source(weir_stream *s)
{
    struct weir__config *config = weir__config(s);
    char copy[PEEK_BYTES];
    ssize_t bytes = config->is_pipe ? copy_from_pipe(config, copy)
                    : config->is_socket
                        ? weir__kernel.recv(config->fd, copy, sizeof copy, MSG_PEEK | MSG_DONTWAIT)
                        : 0;
    if (bytes <= 0)
        return 1;
    const char *end = memchr(copy, config->separator, (size_t)bytes);
    return end ? (size_t)(end - copy) + 1 : (size_t)bytes;
}

void weir__peek_source_close(weir_stream *s)
{
    struct weir__config *config = weir__config(s);
    if (config->peek_pid == (int)getpid())
        close_pipe(config);
}
