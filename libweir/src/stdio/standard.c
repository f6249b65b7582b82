/* standard.c: stdin, stdout and stderr, shared by threads and usable after fclose(3). */
#include "stdio_private.h"

#include <unistd.h>

/* Adapts a stream that weir_stdin() or a similar call has opened before. */
static void make_shared(weir_stream *s, int fd)
{
    struct weir__config *config = weir__config(s);
    weir_lock(s); /* the stream does not lock itself yet */
    if (!config->threads) {
        config->threads = config->locking = true;
        if (fd == STDIN_FILENO)
            weir__set_on_fork(s, WEIR_FORK_KEEP);
        weir__set_limits(s);
    }
    weir_unlock(s);
}

weir_stream *weir_stdio_standard(int fd)
{
    static _Atomic(weir_stream *) known[3];
    weir_stream *s = atomic_load_explicit(&known[fd], memory_order_acquire);
    if (WEIR_LIKELY(s != NULL))
        return s;
    int before = errno;
    weir__stdio_used = true;
    s = fd == STDIN_FILENO ? weir_stdin() : fd == STDOUT_FILENO ? weir_stdout() : weir_stderr();
    if (s) {
        make_shared(s, fd);
        atomic_store_explicit(&known[fd], s, memory_order_release);
    }
    errno = before;
    return s;
}

int weir__stdio_closed_stream(weir_stream **new_stream)
{
    struct weir_options options = {.flags = WEIR_THREADS};
    int result = weir__closed_stream(new_stream, -1, &options);
    if (result == 0)
        weir__unregister(*new_stream);
    return result;
}
