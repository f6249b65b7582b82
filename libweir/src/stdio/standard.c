/* standard.c: stdin, stdout and stderr, shared by threads and usable after fclose(3). */
#include "stdio_private.h"

#include <unistd.h>

/* Makes a stream that weir_stdin() or a similar call has opened before lock itself and behave as a stream of stdio. */
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

weir_stream *weir_stdio_files[3];

/* Keeps a value that the program has assigned meanwhile. */
weir_stream *weir_stdio_standard(int fd)
{
    weir_stream *s = __atomic_load_n(&weir_stdio_files[fd], __ATOMIC_ACQUIRE), *opened;
    if (WEIR_LIKELY(s != NULL))
        return s;
    int before = errno;
    weir__stdio_used = true;
    opened = fd == STDIN_FILENO ? weir_stdin() : fd == STDOUT_FILENO ? weir_stdout() : weir_stderr();
    if (opened) {
        make_shared(opened, fd);
        if (__atomic_compare_exchange_n(&weir_stdio_files[fd], &s, opened, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            s = opened;
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
