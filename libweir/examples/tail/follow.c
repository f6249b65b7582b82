/* follow.c: prints what is appended to the files (-f). */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/inotify.h>

#include "tail.h"

enum { POLL_MS = 1000 }; /* changes made by other machines cause no event */

/* Watches the open file through /proc/self/fd, because its name may have been given to another file. */
static void add_watch(int events, const struct source *source)
{
    char path[40];
    snprintf(path, sizeof path, "/proc/self/fd/%d", weir_fd(source->in));
    inotify_add_watch(events, path, IN_MODIFY); /* may fail: see POLL_MS */
}

/* Watches all files whose size can change. Returns their number. */
static int watch_all(int events, struct source *sources, int count)
{
    int watched = 0;
    for (int i = 0; i < count; i++)
        if (sources[i].in && sources[i].regular) {
            add_watch(events, &sources[i]);
            watched++;
        }
    return watched;
}

static void print_appended(struct source *source, const struct request *request, weir_stream *out)
{
    int64_t size = size_of(source);
    if (size >= 0 && size < source->at) {
        weir_printf(weir_stderr(), "tail: %s: file truncated\n", source->name);
        source->at = 0;
    }
    if (size > source->at) {
        put_header(source, request, out);
        int result = copy_to_end(source, out);
        if (result < 0)
            print_error(source->name, -result);
    }
}

/* Exits if the output's reader has closed the pipe. Otherwise this shows only at the next write. */
static void exit_if_reader_closed(const struct pollfd *target)
{
    if (!(target->revents & (POLLERR | POLLHUP | POLLNVAL)))
        return;
    raise(SIGPIPE);
    fail(STDOUT_NAME, EPIPE);
}

static void wait_for_change(int events)
{
    char discarded[4096];
    struct pollfd waited[2] = { { .fd = events, .events = POLLIN }, { .fd = STDOUT_FILENO } };
    poll(waited, 2, POLL_MS);
    exit_if_reader_closed(&waited[1]);
    while (events >= 0 && read(events, discarded, sizeof discarded) > 0)
        ; /* which file changed does not matter: all are checked */
}

void follow(struct source *sources, int count, const struct request *request, weir_stream *out)
{
    int events = inotify_init1(IN_CLOEXEC | IN_NONBLOCK); /* on failure -1, which poll(2) ignores */
    if (!watch_all(events, sources, count))
        return;
    for (;;) {
        for (int i = 0; i < count; i++)
            if (sources[i].in && sources[i].regular)
                print_appended(&sources[i], request, out);
        check(weir_flush(out), STDOUT_NAME);
        wait_for_change(events);
    }
}
