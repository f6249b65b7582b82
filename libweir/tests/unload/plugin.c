/* plugin.c: a shared object that uses libweir. Its functions return 0 or an error. */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>
#include <weir.h>
#include <weir/stdio.h>

/* Starts libweir's timer thread, which outlives the stream. */
int close_delayed(const char *path)
{
    weir_stream *s;
    const struct weir_options options = {.stale_ms = 1};
    int error = weir_open(&s, path, O_WRONLY | O_CREAT | O_TRUNC, &options);
    if (error)
        return error;
    if (weir_put_str(s, "a line\n") < 0)
        return -1;
    return weir_close(s);
}

/* Leaves the stream open: the timer thread writes its bytes, or the end of the process does. */
int keep_delayed(const char *path)
{
    weir_stream *s;
    const struct weir_options options = {.stale_ms = 20};
    int error = weir_open(&s, path, O_WRONLY | O_CREAT | O_TRUNC, &options);
    return error ? error : weir_put_str(s, "a line\n") < 0;
}

/* Leaves a stream without a delay: it is flushed when the shared object is unloaded, or at the end. */
int keep(const char *path)
{
    weir_stream *s;
    int error = weir_open(&s, path, O_WRONLY | O_CREAT | O_TRUNC, NULL);
    return error ? error : weir_put_str(s, "a line\n") < 0;
}

/* Calls fscanf in a thread that exits after the object is unloaded. */
int scan(const char *path)
{
    int number = 0;
    FILE *f = fopen(path, "w+");
    if (!f || fprintf(f, "12 a line\n") < 0)
        return -1;
    rewind(f);
    if (fscanf(f, "%d", &number) != 1 || number != 12)
        return -2;
    rewind(f);
    return fputs("a line\n", f) < 0 || ftruncate(fileno(f), 7) != 0 || fclose(f) != 0;
}
