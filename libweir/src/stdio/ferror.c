/* ferror.c: the error and end-of-file indicators, fileno, and flockfile. */
#include "stdio_private.h"

int weir__stdio_fail(weir_stream *s, int64_t error)
{
    weir__config(s)->stdio_failed = true;
    errno = (int)-error;
    return EOF;
}

int weir__stdio_fail_write(weir_stream *s, int64_t error)
{
    struct weir__config *config = weir__config(s);
    if (!config->stdio_write_error && config->can_write) /* reading streams have no write errors */
        config->stdio_write_error = (int)error;
    return weir__stdio_fail(s, error);
}

void weir__stdio_take_errors(weir_stream *s)
{
    struct weir__state *state = weir__state(s);
    struct weir__config *config = weir__config(s);
    if (!state->error && !state->read_error)
        return;
    config->stdio_failed = true;
    if (!config->stdio_write_error && config->can_write) /* as in weir__stdio_fail_write */
        config->stdio_write_error = state->error;
    state->error = state->read_error = 0;
    weir__set_limits(s);
}

int weir_stdio_ferror(weir_stream *s) { return weir_error(s) != 0 || weir__config(s)->stdio_failed; }
int weir_stdio_feof(weir_stream *s) { return weir_eof(s); }
void weir_stdio_clearerr(weir_stream *s) { weir_clear(s); }

int weir_stdio_fileno(weir_stream *s)
{
    int fd = weir_fd(s);
    if (fd >= 0)
        return fd;
    errno = EBADF;
    return -1;
}

void weir_stdio_flockfile(weir_stream *s) { weir_lock(s); }
int weir_stdio_ftrylockfile(weir_stream *s) { return weir_trylock(s) == 0 ? 0 : -1; }
void weir_stdio_funlockfile(weir_stream *s) { weir_unlock(s); }
