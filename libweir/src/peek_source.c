/* peek_source.c: finds the end of the next record of a shared pipe or socket without consuming it; the
 * bytes behind it belong to the next reader. Copies the data by tee(2) into a private pipe, or by
 * MSG_PEEK. */
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

/* Creates the pipe at the first use. A forked child creates its own: two readers of one pipe would mix up
 * their copies. */
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
        if (got <= 0 && errno != EINTR) { /* bytes left in the pipe would be taken for the next record */
            close_pipe(config);
            return 0;
        }
        copied_bytes += got > 0 ? got : 0;
    }
    return copied;
}

/* Returns 1 if no data is available, at the end and after an error: the following read blocks or reports
 * it. */
size_t weir__peek_source(weir_stream *s)
{
    struct weir__config *config = weir__config(s);
    char copy[PEEK_BYTES];
    int cancel = weir__cancel_off();
    ssize_t bytes = config->is_pipe ? copy_from_pipe(config, copy)
                    : config->is_socket
                        ? weir__kernel.recv(config->fd, copy, sizeof copy, MSG_PEEK | MSG_DONTWAIT)
                        : 0;
    weir__cancel_restore(cancel);
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
