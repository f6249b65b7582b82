/* std.c: the standard streams. */
#include "private.h"

#include <pthread.h>
#include <unistd.h>

static weir_stream *standard[3];
static pthread_once_t once[3] = {PTHREAD_ONCE_INIT, PTHREAD_ONCE_INIT, PTHREAD_ONCE_INIT};

_Atomic bool weir__stdio_used;

/* A closed descriptor gets a stream as well; its calls fail with -EBADF. */
static void open_standard(int fd)
{
    struct weir_options options = {.flags = WEIR_KEEP_OPEN};
    if (weir__stdio_used) {
        options.flags |= WEIR_THREADS;
        options.on_fork = fd == STDIN_FILENO ? WEIR_FORK_KEEP : WEIR_FORK_EMPTY;
    }
    if (weir_fdopen(&standard[fd], fd, &options) < 0)
        weir__closed_stream(&standard[fd], fd, &options);
}

static void open_in(void)
{
    open_standard(STDIN_FILENO);
    weir_stream *out = weir_stdout();
    if (standard[0] && out && weir__config(standard[0])->terminal && weir__config(out)->terminal)
        weir_tie(standard[0], out);
}
static void open_out(void) { open_standard(STDOUT_FILENO); }
static void open_err(void) { open_standard(STDERR_FILENO); }

static weir_stream *get(int fd, void (*open)(void))
{
    pthread_once(&once[fd], open);
    return standard[fd];
}

bool weir__is_standard(const weir_stream *s) { return s == standard[0] || s == standard[1] || s == standard[2]; }

weir_stream *weir_stdin(void) { return get(STDIN_FILENO, open_in); }
weir_stream *weir_stdout(void) { return get(STDOUT_FILENO, open_out); }
weir_stream *weir_stderr(void) { return get(STDERR_FILENO, open_err); }
