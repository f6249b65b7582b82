/* follow.c: what is added to the files later, as it comes. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/inotify.h>

#include "tail.h"

enum { LOOK_ANYWAY_MS = 1000 }; /* changes made by another machine come without an event */

/* By way of /proc/self/fd, so that it is this file, also when another one has taken its name. */
static void add_watch(int events, const struct source *source)
{
    char path[40];
    snprintf(path, sizeof path, "/proc/self/fd/%d", weir_fd(source->in));
    inotify_add_watch(events, path, IN_MODIFY); /* no matter if it fails: see LOOK_ANYWAY_MS */
}

/* Returns how many files can be followed, as they have a size that may change. */
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

static void look(struct source *source, const struct order *order, weir_stream *out)
{
    int64_t size = size_of(source);
    if (size >= 0 && size < source->at) {
        weir_printf(weir_stderr(), "tail: %s: file truncated\n", source->name);
        source->at = 0;
    }
    if (size > source->at) {
        put_header(source, order, out);
        int result = copy_to_end(source, out);
        if (result < 0)
            complain(source->name, -result);
    }
}

/* A reader that has gone away shows only when something is written, which may be never. */
static void stop_if_nobody_reads(const struct pollfd *target)
{
    if (!(target->revents & (POLLERR | POLLHUP | POLLNVAL)))
        return;
    raise(SIGPIPE);
    give_up(STDOUT_NAME, EPIPE);
}

static void wait_for_change(int events)
{
    char taken[4096];
    struct pollfd waited[2] = { { .fd = events, .events = POLLIN }, { .fd = STDOUT_FILENO } };
    poll(waited, 2, LOOK_ANYWAY_MS);
    stop_if_nobody_reads(&waited[1]);
    while (events >= 0 && read(events, taken, sizeof taken) > 0)
        ; /* which file it was does not matter: all are looked at */
}

void follow(struct source *sources, int count, const struct order *order, weir_stream *out)
{
    int events = inotify_init1(IN_CLOEXEC | IN_NONBLOCK); /* -1 is a descriptor that poll(2) leaves out */
    if (!watch_all(events, sources, count))
        return;
    for (;;) {
        for (int i = 0; i < count; i++)
            if (sources[i].in && sources[i].regular)
                look(&sources[i], order, out);
        check(weir_flush(out), STDOUT_NAME);
        wait_for_change(events);
    }
}
